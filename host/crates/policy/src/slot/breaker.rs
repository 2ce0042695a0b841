//! When a generation is given up: too many failures within a span of the questions' own time.

use crate::contract::Info;
use crate::contract::slot_name::SlotName;
use crate::guest::Digest;
use crate::guest::{Failure, FailureKind};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many failures of one generation are borne.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// With so many failures within the window the generation is given up; at least 1.
    pub failures_max: usize,
    /// The window in milliseconds, by the moments of the questions.
    pub window_ms: u64,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { failures_max: 5, window_ms: 60_000 }
    }
}

impl Breaker {
    /// What to say of a trip by this failure.
    pub(crate) fn words(&self, failure: &Failure) -> String {
        let Self { failures_max, window_ms } = self;
        format!(
            "failed {failures_max} times within {window_ms} ms, at last by {}: {}",
            failure.kind.as_str(),
            failure.message
        )
    }
}

/// A breaker that has tripped: a generation answers no more, or an arm.
#[derive(Debug, Clone)]
pub struct Trip {
    /// The slot.
    pub slot: SlotName,
    /// The arm that tripped; `None`: what served the slot.
    pub arm: Option<Arc<str>>,
    /// What tripped. Of the slot itself: quarantined from now on.
    pub digest: Digest,
    /// What it said of itself.
    pub info: Info,
    /// The failure that was one too many.
    pub kind: FailureKind,
    /// For the operator: how many failures, and the last one's message.
    pub why: String,
    /// The moment of that decision, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// What serves the slot now; `None`: the native rule.
    pub serves: Option<Digest>,
}

/// Told of every trip, by the thread whose decision it was: it may not wait for anything.
pub type TripHook = Arc<dyn Fn(&Trip) + Send + Sync>;

/// The failures of one generation in its current place.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<VecDeque<u64>>);

impl Failures {
    /// One more, at this moment; true when it is one too many. Questions of different threads come in any order, and a
    /// clock that was set back does not keep old failures for ever.
    pub(crate) fn note(&self, now_ms: u64, breaker: &Breaker) -> bool {
        let mut moments = self.0.lock();
        moments.retain(|moment| now_ms.abs_diff(*moment) < breaker.window_ms);
        moments.push_back(now_ms);
        let tripped = moments.len() >= breaker.failures_max;
        if tripped {
            moments.pop_front();
        }
        tripped
    }

    /// Begins anew.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: Breaker = Breaker { failures_max: 3, window_ms: 1_000 };

    fn notes(moments: &[u64]) -> Vec<bool> {
        let failures = Failures::default();
        moments.iter().map(|moment| failures.note(*moment, &THREE)).collect()
    }

    #[test]
    fn only_failures_within_the_window_count() {
        assert_eq!(notes(&[0, 500, 999]), [false, false, true]);
        assert_eq!(notes(&[0, 500, 1_000, 1_499]), [false, false, false, true], "the first was out of the window");
        assert_eq!(notes(&[0, 1_000, 2_000, 3_000]), [false; 4]);
    }

    #[test]
    fn order_does_not_count_and_a_clock_that_was_set_back_does_not_trip() {
        assert_eq!(notes(&[900, 100, 500]), [false, false, true]);
        assert_eq!(notes(&[50_000, 50_001, 10]), [false, false, false]);
    }

    #[test]
    fn memory_is_bounded_by_the_setting() {
        let failures = Failures::default();
        for _ in 0..100 {
            failures.note(7, &THREE);
        }
        assert!(failures.0.lock().len() < THREE.failures_max);
        failures.clear();
        assert!(!failures.note(7, &THREE));
        assert!(failures.note(7, &Breaker { failures_max: 1, ..THREE }), "a single failure can be enough");
    }
}
