//! How long decisions took, in bounded memory: a histogram whose buckets are a sixteenth of their value wide.

use std::time::Duration;

use serde::{Serialize, Serializer};

/// Of a power of two of nanoseconds, as many buckets.
const PARTS: u64 = 16;
/// All that 64 bits of nanoseconds need.
const BUCKETS: usize = 61 * PARTS as usize;

/// Counts by cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    buckets: Vec<u64>,
    count: u64,
}

impl Default for Costs {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0 }
    }
}

/// What is told of costs, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CostsShown {
    /// Half of the decisions took no longer.
    pub p50_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
}

impl Costs {
    pub(crate) fn note(&mut self, cost: Duration) {
        let nanos = u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanos)] += 1;
        self.count += 1;
    }

    /// `None` when nothing was counted.
    pub fn shown(&self) -> Option<CostsShown> {
        Some(CostsShown { p50_us: self.quantile_us(50)?, p99_us: self.quantile_us(99)? })
    }

    /// The upper bound of the bucket that the cost of so many in a hundred lies in.
    fn quantile_us(&self, percent: u64) -> Option<f64> {
        let rank = (self.count * percent).div_ceil(100);
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += count;
            *count > 0 && seen >= rank
        });
        found.map(|bucket| upper_nanos(bucket) as f64 / 1_000.0)
    }
}

impl Serialize for Costs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown().serialize(serializer)
    }
}

/// The first values have a bucket each; from there on the leading five bits say which.
fn bucket(nanos: u64) -> usize {
    let shift = u64::from((nanos | PARTS).ilog2() - PARTS.ilog2());
    (shift * PARTS + (nanos >> shift)) as usize
}

/// The largest value of a bucket.
fn upper_nanos(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / PARTS).saturating_sub(1);
    let lead = u128::from(bucket - shift * PARTS);
    u64::try_from(((lead + 1) << shift) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_none_is_wide() {
        for shift in 0..64 {
            for nanos in [1_u64 << shift, (1 << shift) + 1, (1 << shift) | (1 << shift >> 1), u64::MAX >> shift] {
                let bucket = bucket(nanos);
                assert!(bucket < BUCKETS, "{nanos}");
                let upper = upper_nanos(bucket);
                assert!(nanos <= upper && upper - nanos <= nanos / 16, "{nanos} in the bucket up to {upper}");
                assert!(bucket == 0 || upper_nanos(bucket - 1) < nanos, "{nanos}");
            }
        }
    }

    #[test]
    fn quantiles() {
        let mut costs = Costs::default();
        assert_eq!(costs.shown(), None);
        for _ in 0..98 {
            costs.note(Duration::from_nanos(8));
        }
        costs.note(Duration::from_micros(1));
        costs.note(Duration::MAX);
        let shown = costs.shown().unwrap();
        assert_eq!(shown.p50_us, 0.008);
        assert!((1.0..1.07).contains(&shown.p99_us), "{shown:?}");
    }
}
