//! Decides when a generation is given up: after too many failures within a span of the questions' own time.

use crate::contract::{Info, SlotName};
use crate::guest::{Digest, Failure, FailureKind};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many failures of one generation trip its breaker, by default.
pub const BREAKER_FAILURES: u32 = 5;
/// Within what time, by default, in milliseconds by the moments of the questions.
pub const BREAKER_WINDOW_MS: u32 = 60_000;

/// How many failures of one generation are tolerated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// A generation is given up at so many failures within the window; at least 1.
    pub failures_max: usize,
    /// The window in milliseconds, by the moments of the questions.
    pub window_ms: u64,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { failures_max: BREAKER_FAILURES as usize, window_ms: BREAKER_WINDOW_MS.into() }
    }
}

impl Breaker {
    /// The reason of a trip by this failure, for the operator.
    pub(super) fn trip_reason(&self, failure: &Failure) -> String {
        let Self { failures_max, window_ms } = self;
        format!("failed {failures_max} times within {window_ms} ms, at last by {failure}")
    }
}

/// A breaker that has tripped: a generation or an arm is asked no more.
#[derive(Debug, Clone)]
pub struct Trip {
    /// The slot.
    pub slot: SlotName,
    /// The arm that tripped; `None` if it was what served the slot.
    pub arm: Option<Arc<str>>,
    /// What tripped. If it served the slot, it is quarantined from now on.
    pub digest: Digest,
    /// The policy's description of itself.
    pub info: Info,
    /// The failure that made it trip.
    pub kind: FailureKind,
    /// For the operator: how many failures, and the last one's message.
    pub why: String,
    /// The moment of that decision, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// What serves the slot now; `None` for the native rule.
    pub serves: Option<Digest>,
}

/// Called at every trip, by the thread whose decision it was. It may not wait for anything.
pub type TripHook = Arc<dyn Fn(&Trip) + Send + Sync>;

/// The moments of the failures that the breaker counts, of one generation in its current place.
#[derive(Debug, Default)]
pub(super) struct FailureMoments(Mutex<VecDeque<u64>>);

impl FailureMoments {
    /// Adds a failure, if the policy is at fault. Returns whether it is one too many.
    pub(super) fn add(&self, failure: &Failure, now_ms: u64, breaker: &Breaker) -> bool {
        failure.is_counted && self.add_moment(now_ms, breaker)
    }

    /// Questions of different threads come in any order. A clock that is set back keeps no old failures.
    fn add_moment(&self, now_ms: u64, breaker: &Breaker) -> bool {
        let mut moments = self.0.lock();
        moments.retain(|moment| now_ms.abs_diff(*moment) < breaker.window_ms);
        moments.push_back(now_ms);
        let tripped = moments.len() >= breaker.failures_max;
        if tripped {
            moments.pop_front();
        }
        tripped
    }

    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: Breaker = Breaker { failures_max: 3, window_ms: 1_000 };

    fn trips(moments: &[u64]) -> Vec<bool> {
        let failures = FailureMoments::default();
        moments.iter().map(|moment| failures.add_moment(*moment, &THREE)).collect()
    }

    #[test]
    fn counts_only_failures_within_the_window() {
        assert_eq!(trips(&[0, 500, 999]), [false, false, true]);
        assert_eq!(trips(&[0, 500, 1_000, 1_499]), [false, false, false, true], "the first was out of the window");
        assert_eq!(trips(&[0, 1_000, 2_000, 3_000]), [false; 4]);
    }

    #[test]
    fn counts_in_any_order_and_does_not_trip_when_the_clock_is_set_back() {
        assert_eq!(trips(&[900, 100, 500]), [false, false, true]);
        assert_eq!(trips(&[50_000, 50_001, 10]), [false, false, false]);
    }

    #[test]
    fn bounds_its_memory_by_the_setting() {
        let failures = FailureMoments::default();
        for _ in 0..100 {
            failures.add_moment(7, &THREE);
        }
        assert!(failures.0.lock().len() < THREE.failures_max);
        failures.clear();
        assert!(!failures.add_moment(7, &THREE));
        assert!(failures.add_moment(7, &Breaker { failures_max: 1, ..THREE }), "a single failure can be enough");
    }
}
