//! Counts decisions and failures, and keeps the last failure.

use super::status::DecisionFailure;
use crate::guest::{Failure, FailureKind};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one slot over all its generations, or of one arm.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) calls: AtomicU64,
    pub(super) native: AtomicU64,
    failures: [AtomicU64; FailureKind::ALL.len()],
    last_failure: Mutex<Option<DecisionFailure>>,
}

impl Counters {
    pub(super) fn count_failure(&self, kind: FailureKind) {
        self.failures[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failures(&self) -> BTreeMap<&'static str, u64> {
        FailureKind::ALL
            .into_iter()
            .map(|kind| (kind.as_str(), self.failures[kind as usize].load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// Keeps the last failure, of this generation's number, or 0 for an arm.
    pub(super) fn keep_failure(&self, failure: Failure, now_ms: u64, generation: u64) {
        let Failure { kind, message, .. } = failure;
        *self.last_failure.lock() = Some(DecisionFailure { kind, message, at: now_ms, generation });
    }

    pub(super) fn last_failure(&self) -> Option<DecisionFailure> {
        self.last_failure.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_kind_of_failure() {
        let counters = Counters::default();
        for kind in FailureKind::ALL {
            counters.count_failure(kind);
        }
        let failures = counters.failures();
        assert_eq!(failures.len(), FailureKind::ALL.len());
        assert!(failures.values().all(|count| *count == 1));
    }
}
