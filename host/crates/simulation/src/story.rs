//! What happens, line by line, for whoever wants to read it. Nothing is written down when nobody does.

use crate::agenda::Moment;

/// Who is told.
pub(crate) struct Story<'a> {
    reader: Option<&'a mut dyn FnMut(&str)>,
}

impl<'a> Story<'a> {
    pub(crate) fn new(reader: Option<&'a mut dyn FnMut(&str)>) -> Story<'a> {
        Story { reader }
    }

    pub(crate) fn is_told(&self) -> bool {
        self.reader.is_some()
    }

    pub(crate) fn line(&mut self, at: Moment, who: &str, what: &str) {
        if let Some(reader) = &mut self.reader {
            reader(&format!("{at}  {who:<5} {what}"));
        }
    }
}

/// Tells a line of a world's story: who, and what as in `format!`.
macro_rules! tell {
    ($world:expr, $who:expr, $($what:tt)*) => {
        if $world.story.is_told() {
            let (who, what) = ($who.to_string(), format!($($what)*));
            $world.story.line($world.now, &who, &what);
        }
    };
}

pub(crate) use tell;

/// A process, a client or a connection by its number.
pub(crate) fn process(number: usize) -> String {
    format!("r{number}")
}

/// A client by its number.
pub(crate) fn client(number: usize) -> String {
    format!("c{number}")
}
