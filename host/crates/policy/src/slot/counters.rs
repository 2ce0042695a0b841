//! Counts decisions and failures.

use crate::guest::FailureKind;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one slot, over all its generations.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) calls: AtomicU64,
    pub(crate) native: AtomicU64,
    failures: [AtomicU64; FailureKind::ALL.len()],
}

impl Counters {
    pub(crate) fn count_failure(&self, kind: FailureKind) {
        self.failures[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn failures(&self) -> BTreeMap<&'static str, u64> {
        FailureKind::ALL
            .into_iter()
            .map(|kind| (kind.as_str(), self.failures[kind as usize].load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_counter() {
        let counters = Counters::default();
        for kind in FailureKind::ALL {
            counters.count_failure(kind);
        }
        let failures = counters.failures();
        assert_eq!(failures.len(), FailureKind::ALL.len());
        assert!(failures.values().all(|count| *count == 1));
    }
}
