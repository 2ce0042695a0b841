//! Keeps the order of a socket's events from the first one on.
//!
//! A client may send as soon as it reads CONNECT. The server may not have marked the socket as connected by then, and an answer
//! before that mark is lost. So early events wait until the connect handler has run. That takes a few microseconds. All events are
//! handled under one lock, in the order in which they arrived.

use parking_lot::Mutex;
use std::collections::VecDeque;

/// How many events may arrive before the connect handler has run. Clients usually send a few.
const EARLY_EVENTS_MAX: usize = 4_096;

/// The events of one socket, in order.
pub(crate) struct OrderedEvents<E>(Mutex<QueueState<E>>);

enum QueueState<E> {
    Early(VecDeque<E>),
    Connected,
    Closed,
}

/// The socket is gone, or sent more than [`EARLY_EVENTS_MAX`] events before it was connected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventDropped;

impl<E> OrderedEvents<E> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(QueueState::Early(VecDeque::new())))
    }

    /// Passes `event` to `handle`, now or when the socket is connected.
    ///
    /// # Errors
    /// When the event is dropped.
    pub(crate) fn handle(&self, event: E, handle: impl FnOnce(E)) -> Result<(), EventDropped> {
        let mut state = self.0.lock();
        match &mut *state {
            QueueState::Connected => handle(event),
            QueueState::Early(early) if early.len() < EARLY_EVENTS_MAX => early.push_back(event),
            QueueState::Early(_) | QueueState::Closed => return Err(EventDropped),
        }
        Ok(())
    }

    /// Runs `connected`, then handles the early events in order. Does nothing if the socket is already gone.
    pub(crate) fn connect(&self, connected: impl FnOnce(), mut handle: impl FnMut(E)) {
        let mut state = self.0.lock();
        let QueueState::Early(early) = &mut *state else { return };
        let early = std::mem::take(early);
        *state = QueueState::Connected;
        connected();
        early.into_iter().for_each(&mut handle);
    }

    /// Drops all later events. True if the socket was connected.
    pub(crate) fn close(&self) -> bool {
        matches!(std::mem::replace(&mut *self.0.lock(), QueueState::Closed), QueueState::Connected)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn early_events_are_handled_first_and_in_order() {
        let seen = RefCell::new(Vec::new());
        let events = OrderedEvents::new();
        for event in 1..=3 {
            assert_eq!(events.handle(event, |event| seen.borrow_mut().push(event)), Ok(()));
        }
        assert!(seen.borrow().is_empty());
        events.connect(|| seen.borrow_mut().push(0), |event| seen.borrow_mut().push(event));
        assert_eq!(events.handle(4, |event| seen.borrow_mut().push(event)), Ok(()));
        assert_eq!(*seen.borrow(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_socket_that_left_early_is_never_connected() {
        let events = OrderedEvents::new();
        assert_eq!(events.handle((), |()| ()), Ok(()));
        assert!(!events.close());
        events.connect(|| unreachable!("the socket is gone"), |()| unreachable!("the socket is gone"));
        assert_eq!(events.handle((), |()| ()), Err(EventDropped));
    }

    #[test]
    fn early_events_are_bounded() {
        let events = OrderedEvents::new();
        for _ in 0..EARLY_EVENTS_MAX {
            assert_eq!(events.handle((), |()| ()), Ok(()));
        }
        assert_eq!(events.handle((), |()| ()), Err(EventDropped));
    }
}
