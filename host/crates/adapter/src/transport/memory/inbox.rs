//! Queues the events that one connection has not received yet.

use std::collections::VecDeque;

use crate::transport::types::Received;

/// How many messages wait before the oldest are dropped. A connection to a real Redis has the same default.
pub(super) const MESSAGES_MAX: usize = 16_384;

/// The queue, in order. It is bounded: if the connection was lost and restored several times unseen, only the last state is kept.
#[derive(Default)]
pub(super) struct Inbox {
    queue: VecDeque<Received>,
    messages: usize,
    /// How many messages must still be dropped, and how many in all.
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
            // The connection saw neither event.
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

    /// Replaces the oldest message by `Missed`.
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
mod tests;
