//! Counts what happened within a sliding window. The caller bounds how much it counts.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Time;

#[derive(Debug, Default)]
pub(super) struct Window {
    /// Oldest first.
    times: VecDeque<Time>,
}

impl Window {
    /// How many happened within the last `span`; older ones are forgotten.
    pub(super) fn count(&mut self, span: Duration, now: Time) -> usize {
        while self.times.front().is_some_and(|at| now.saturating_since(*at) >= span) {
            self.times.pop_front();
        }
        self.times.len()
    }

    pub(super) fn push(&mut self, now: Time) {
        self.times.push_back(now);
    }

    pub(super) fn clear(&mut self) {
        self.times = VecDeque::new();
    }

    /// Until the oldest is out of the window.
    pub(super) fn frees_in(&self, span: Duration, now: Time) -> Duration {
        self.times.front().map_or(Duration::ZERO, |at| (*at + span).saturating_since(now))
    }
}
