//! Reports the events of a world to a listener, line by line. Nothing is formatted when nobody listens.

use crate::time::WorldTime;

/// The listener, if there is one.
pub(crate) struct Trace<'a> {
    listener: Option<&'a mut dyn FnMut(&str)>,
}

impl<'a> Trace<'a> {
    pub(crate) fn new(listener: Option<&'a mut dyn FnMut(&str)>) -> Trace<'a> {
        Trace { listener }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.listener.is_some()
    }

    pub(crate) fn line(&mut self, at: WorldTime, who: &str, what: &str) {
        if let Some(listener) = &mut self.listener {
            listener(&format!("{at}  {who:<5} {what}"));
        }
    }
}

/// Reports a line of a world's trace: who and what, both as in `format!`.
macro_rules! trace {
    ($world:expr, $who:literal, $($what:tt)*) => {
        if $world.trace.is_on() {
            let (who, what) = (format!($who), format!($($what)*));
            $world.trace.line($world.now, &who, &what);
        }
    };
}

pub(crate) use trace;
