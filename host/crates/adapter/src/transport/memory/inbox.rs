//! What waits for one connection to receive it.

use std::collections::VecDeque;

use crate::transport::types::Received;

/// How many messages wait; then the oldest are dropped. The default of a real Redis's connection too.
pub(super) const MESSAGES_MAX: usize = 16_384;

/// In order. Bounded: of links that come and go unseen only the end is kept.
#[derive(Default)]
pub(super) struct Inbox {
    queue: VecDeque<Received>,
    messages: usize,
    /// So many messages are still to be dropped, of so many.
    lag: Option<(u64, u64)>,
}

impl Inbox {
    pub(super) fn message(&mut self, channel: String, payload: bytes::Bytes) {
        if let Some((left, all)) = self.lag.take() {
            match left {
                1 => self.queue.push_back(Received::Missed(all)),
                _ => self.lag = Some((left - 1, all)),
            }
            return;
        }
        if self.messages == MESSAGES_MAX {
            self.drop_oldest();
        }
        self.messages += 1;
        self.queue.push_back(Received::Message { channel, payload });
    }

    pub(super) fn lag(&mut self, messages: u64) {
        self.lag = (messages > 0).then_some((messages, messages));
    }

    pub(super) fn interrupted(&mut self) {
        match self.queue.back() {
            // Neither was seen.
            Some(Received::Restored) => drop(self.queue.pop_back()),
            _ => self.queue.push_back(Received::Interrupted),
        }
    }

    pub(super) fn restored(&mut self) {
        self.queue.push_back(Received::Restored);
    }

    pub(super) fn next(&mut self) -> Option<Received> {
        let next = self.queue.pop_front()?;
        self.messages -= usize::from(matches!(next, Received::Message { .. }));
        Some(next)
    }

    /// Puts `Missed` where the oldest message was.
    fn drop_oldest(&mut self) {
        let Some(at) = self.queue.iter().position(|one| matches!(one, Received::Message { .. })) else { return };
        self.messages -= 1;
        match at.checked_sub(1).and_then(|before| self.queue.get_mut(before)) {
            Some(Received::Missed(missed)) => {
                *missed += 1;
                self.queue.remove(at);
            }
            _ => self.queue[at] = Received::Missed(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn message(number: usize) -> Received {
        Received::Message { channel: "c".to_owned(), payload: Bytes::from(number.to_string()) }
    }

    fn fill(inbox: &mut Inbox, numbers: std::ops::Range<usize>) {
        numbers.for_each(|number| inbox.message("c".to_owned(), number.to_string().into()));
    }

    #[test]
    fn the_oldest_messages_go_when_it_is_full() {
        let mut inbox = Inbox::default();
        inbox.restored();
        fill(&mut inbox, 0..MESSAGES_MAX + 3);
        assert_eq!(inbox.queue.len(), MESSAGES_MAX + 2);
        assert_eq!([inbox.next(), inbox.next()], [Some(Received::Restored), Some(Received::Missed(3))]);
        assert_eq!(inbox.next(), Some(message(3)));
    }

    #[test]
    fn a_lag_is_told_once() {
        let mut inbox = Inbox::default();
        inbox.lag(2);
        fill(&mut inbox, 0..4);
        let all: Vec<_> = std::iter::from_fn(|| inbox.next()).collect();
        assert_eq!(all, [Received::Missed(2), message(2), message(3)]);
    }

    #[test]
    fn a_link_that_flaps_unseen_takes_no_room() {
        let mut inbox = Inbox::default();
        inbox.restored();
        for _ in 0..100 {
            inbox.interrupted();
            inbox.restored();
        }
        assert_eq!([inbox.next(), inbox.next()], [Some(Received::Restored), None]);
        for _ in 0..100 {
            inbox.interrupted();
            inbox.restored();
        }
        let all: Vec<_> = std::iter::from_fn(|| inbox.next()).collect();
        assert_eq!(all, [Received::Interrupted, Received::Restored]);
    }
}
