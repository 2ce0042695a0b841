//! Histograms that cost two additions a value, whoever reads them and whenever: those of calls and decisions.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Counts by upper bound, and the sum. Values are whole: nanoseconds, or counts.
pub(crate) struct Buckets {
    bounds: &'static [u64],
    /// One for each bound, and one for what is above all.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

/// Of calls, in nanoseconds: the seed deployment's bounds (50 ms to 30 s), and below them what a host like this one needs.
pub(crate) const CALL_NS: [u64; 14] = [
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
];

/// Of decisions, in nanoseconds: the usual one takes a few microseconds, the longest a slot's deadline, of a second at most.
pub(crate) const DECISION_NS: [u64; 13] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    500_000,
    1_000_000,
    5_000_000,
    20_000_000,
    100_000_000,
    1_000_000_000,
];

/// Of looks: the seed deployment's bounds.
pub(crate) const LOOKS: [u64; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

impl Buckets {
    /// Nothing counted yet; `bounds` are upper ones, in rising order.
    pub(crate) fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(), sum: AtomicU64::new(0) }
    }

    pub(crate) fn note(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub(crate) fn note_span(&self, span: Duration) {
        self.note(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Each bound with how many values were not above it, and how many there were in all.
    pub(crate) fn read(&self) -> (Vec<(u64, u64)>, u64) {
        let mut total = 0;
        let mut upto = |count: &AtomicU64| {
            total += count.load(Ordering::Relaxed);
            total
        };
        let bounded = self.bounds.iter().zip(&self.counts).map(|(bound, count)| (*bound, upto(count))).collect();
        let all = self.counts.last().map_or(0, upto);
        (bounded, all)
    }

    pub(crate) fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| count.load(Ordering::Relaxed) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_up_to_their_bound() {
        let buckets = Buckets::new(&[10, 20]);
        assert!(buckets.is_empty());
        [0, 10, 11, 20, 21, 1_000].into_iter().for_each(|value| buckets.note(value));
        assert_eq!(buckets.read(), (vec![(10, 2), (20, 4)], 6));
        assert_eq!((buckets.sum(), buckets.is_empty()), (1_062, false));
    }
}
