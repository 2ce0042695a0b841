//! Keeps the last decisions of one slot in memory.

use std::{collections::VecDeque, sync::Arc};

use pointwork_policy::record::DecisionRecord;

/// The most memory of one slot's records, in bytes. Six times the default number of the longest records fit.
const BYTES_MAX: usize = 32 << 20;

/// A queue of records that is bounded by count and by memory.
pub(super) struct Ring {
    records: VecDeque<(Arc<DecisionRecord>, usize)>,
    records_max: usize,
    bytes: usize,
}

impl Ring {
    pub(super) fn new(records_max: usize) -> Self {
        Self { records: VecDeque::new(), records_max, bytes: 0 }
    }

    /// Adds a record. Returns the records that were removed for it.
    pub(super) fn push(&mut self, record: Arc<DecisionRecord>) -> impl Sized + use<> {
        let bytes = record.memory_bytes();
        self.bytes += bytes;
        self.records.push_back((record, bytes));
        let first = self.pop_surplus();
        let mut others = Vec::new();
        while let Some(other) = self.pop_surplus() {
            others.push(other);
        }
        (first, others)
    }

    /// The last records, oldest first.
    pub(super) fn latest(&self, limit: usize) -> Vec<Arc<DecisionRecord>> {
        let surplus = self.records.len().saturating_sub(limit);
        self.records.iter().skip(surplus).map(|(record, _)| record.clone()).collect()
    }

    fn pop_surplus(&mut self) -> Option<Arc<DecisionRecord>> {
        if self.records.len() <= self.records_max && self.bytes <= BYTES_MAX {
            return None;
        }
        let (record, bytes) = self.records.pop_front()?;
        self.bytes -= bytes;
        Some(record)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::policies::records::tests::grace_record;

    #[test]
    fn removes_the_oldest_records_first_and_counts_bytes() {
        let mut ring = Ring::new(3);
        for decision in 1..=5 {
            drop(ring.push(Arc::new(grace_record(decision, "m"))));
        }
        let ids = |limit| ring.latest(limit).iter().map(|record| record.decision).collect::<Vec<_>>();
        assert_eq!(ids(9), [3, 4, 5]);
        assert_eq!(ids(2), [4, 5]);
        assert_eq!(ring.bytes, 3 * grace_record(1, "m").memory_bytes());
    }

    #[test]
    fn is_bounded_by_memory() {
        let mut ring = Ring::new(1_000_000);
        let method = "m".repeat(1 << 20);
        for decision in 1..=40 {
            drop(ring.push(Arc::new(grace_record(decision, &method))));
        }
        assert!(ring.bytes <= BYTES_MAX && ring.records.len() == 31, "{}", ring.records.len());
        assert_eq!(ring.latest(1)[0].decision, 40);
    }
}
