//! The world's clock and what is to happen when. Time does not pass, it jumps to what is next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::ops::Add;
use std::time::Duration;

use crate::event::Event;

/// A moment of the world, in microseconds since its beginning. No replica knows it: each has a clock of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) const ZERO: Moment = Moment(0);

    /// The span from `earlier`; zero if that is later.
    pub(crate) fn since(self, earlier: Moment) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, span: Duration) -> Moment {
        Moment(self.0 + u64::try_from(span.as_micros()).unwrap_or(u64::MAX / 2))
    }
}

/// Seconds, to the microsecond.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>4}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// What is to happen, in the order of the moments; of one moment, in the order it was entered.
#[derive(Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Reverse<(Moment, u64, usize)>>,
    entered: u64,
    /// The events by the last number of their entry: the heap moves numbers only.
    events: Vec<Option<Event>>,
    free: Vec<usize>,
}

impl Agenda {
    pub(crate) fn enter(&mut self, at: Moment, event: Event) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[place] = Some(event);
        self.entered += 1;
        self.heap.push(Reverse((at, self.entered, place)));
    }

    /// The next event, if it is to happen by `until`.
    pub(crate) fn next(&mut self, until: Option<Moment>) -> Option<(Moment, Event)> {
        let Reverse((at, ..)) = self.heap.peek()?;
        if until.is_some_and(|until| *at > until) {
            return None;
        }
        let Reverse((at, _, place)) = self.heap.pop()?;
        self.free.push(place);
        Some((at, self.events[place].take()?))
    }
}
