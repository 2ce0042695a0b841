//! A histogram with fixed bounds. Recording a value costs two additions, and needs no upkeep.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Counts of values by upper bound, and their sum. Values are whole numbers, such as nanoseconds.
pub(crate) struct FixedHistogram {
    bounds: &'static [u64],
    /// One count for each bound, and one for values above all bounds.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

/// Bounds for calls, in nanoseconds: those of existing deployments (50 ms to 30 s), and smaller ones for a faster host.
pub(crate) const CALL_NS: [u64; 14] =
    scaled([10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 300_000], 100_000);

/// Bounds for decisions, in nanoseconds. Most take a few microseconds. The longest takes a slot's deadline, at most a second.
pub(crate) const DECISION_NS: [u64; 13] =
    scaled([1, 2, 5, 10, 20, 50, 100, 500, 1_000, 5_000, 20_000, 100_000, 1_000_000], 1_000);

/// Bounds for lookups: those of existing deployments.
pub(crate) const LOOKS: [u64; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

const fn scaled<const N: usize>(mut bounds: [u64; N], unit: u64) -> [u64; N] {
    let mut index = 0;
    while index < N {
        bounds[index] *= unit;
        index += 1;
    }
    bounds
}

impl FixedHistogram {
    /// An empty histogram. `bounds` are upper bounds in rising order.
    pub(crate) fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(), sum: AtomicU64::new(0) }
    }

    pub(crate) fn record(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub(crate) fn record_duration(&self, span: Duration) {
        self.record(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Each bound with the number of values up to it, and the number of all values.
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
    fn counts_values_up_to_each_bound() {
        let histogram = FixedHistogram::new(&[10, 20]);
        assert!(histogram.is_empty());
        [0, 10, 11, 20, 21, 1_000].into_iter().for_each(|value| histogram.record(value));
        assert_eq!(histogram.read(), (vec![(10, 2), (20, 4)], 6));
        assert_eq!((histogram.sum(), histogram.is_empty()), (1_062, false));
    }
}
