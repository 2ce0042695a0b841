//! Keeps the order of a socket's events from the first one on.
//!
//! A client may send the moment it reads CONNECT, which is before the server has marked the socket as connected, and an
//! answer emitted before that mark is lost. So events wait here until the connect handler has run; the wait is some
//! microseconds long, and each event, early or not, is handled under the same lock, in the order it came.

use parking_lot::Mutex;
use std::collections::VecDeque;

/// How many events may come before the connect handler has run. An honest client sends a few.
const EARLY_EVENTS_MAX: usize = 4_096;

/// A socket's gate. `E` is an event.
pub(crate) struct Gate<E>(Mutex<State<E>>);

enum State<E> {
    Early(VecDeque<E>),
    Open,
    Closed,
}

/// What became of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// Handled, or kept until the gate opens.
    Yes,
    /// The socket is gone, or sent more than [`EARLY_EVENTS_MAX`] events before it was connected: the event is dropped.
    No,
}

impl<E> Gate<E> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State::Early(VecDeque::new())))
    }

    /// Hands `event` to `handle`, now or when the gate opens.
    pub(crate) fn pass(&self, event: E, handle: impl FnOnce(E)) -> Passed {
        let mut state = self.0.lock();
        match &mut *state {
            State::Open => handle(event),
            State::Early(events) if events.len() < EARLY_EVENTS_MAX => events.push_back(event),
            State::Early(_) | State::Closed => return Passed::No,
        }
        Passed::Yes
    }

    /// Runs `connected`, then handles what came early, in order. Does nothing when the socket is gone already.
    pub(crate) fn open(&self, connected: impl FnOnce(), mut handle: impl FnMut(E)) {
        let mut state = self.0.lock();
        let State::Early(events) = &mut *state else { return };
        let events = std::mem::take(events);
        *state = State::Open;
        connected();
        events.into_iter().for_each(&mut handle);
    }

    /// Shuts the gate for good; true when it had been open.
    pub(crate) fn close(&self) -> bool {
        matches!(std::mem::replace(&mut *self.0.lock(), State::Closed), State::Open)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn early_events_are_handled_first_and_in_order() {
        let seen = RefCell::new(Vec::new());
        let gate = Gate::new();
        for event in 1..=3 {
            assert_eq!(gate.pass(event, |event| seen.borrow_mut().push(event)), Passed::Yes);
        }
        assert!(seen.borrow().is_empty());
        gate.open(|| seen.borrow_mut().push(0), |event| seen.borrow_mut().push(event));
        assert_eq!(gate.pass(4, |event| seen.borrow_mut().push(event)), Passed::Yes);
        assert_eq!(*seen.borrow(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_socket_that_left_before_it_was_connected_never_opens() {
        let gate = Gate::new();
        assert_eq!(gate.pass((), |()| ()), Passed::Yes);
        assert!(!gate.close());
        gate.open(|| unreachable!("the socket is gone"), |()| unreachable!("the socket is gone"));
        assert_eq!(gate.pass((), |()| ()), Passed::No);
    }

    #[test]
    fn early_events_are_bounded() {
        let gate = Gate::new();
        for _ in 0..EARLY_EVENTS_MAX {
            assert_eq!(gate.pass((), |()| ()), Passed::Yes);
        }
        assert_eq!(gate.pass((), |()| ()), Passed::No);
    }
}
