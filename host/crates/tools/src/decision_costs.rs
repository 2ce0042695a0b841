//! Measures how long decisions take, in a histogram whose buckets are a sixteenth of their value wide.

use std::{fmt, time::Duration};

use serde::{Serialize, Serializer};

/// Buckets for each power of two of nanoseconds.
const PARTS: u64 = 16;
/// Buckets for all values of 64 bits.
const BUCKETS: usize = 61 * PARTS as usize;

/// How many decisions took how long. As JSON it is its [`CostQuantiles`], or null.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionCosts {
    buckets: Vec<u64>,
    count: u64,
}

impl Default for DecisionCosts {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0 }
    }
}

/// The quantiles of the costs of decisions, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CostQuantiles {
    /// Half of the decisions took at most this long.
    pub p50_us: f64,
    /// 99 of 100 decisions took at most this long.
    pub p99_us: f64,
}

impl fmt::Display for CostQuantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p50 {:.2} us, p99 {:.2} us", self.p50_us, self.p99_us)
    }
}

impl DecisionCosts {
    /// Counts a decision.
    pub(crate) fn record(&mut self, cost: Duration) {
        let nanos = u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanos)] += 1;
        self.count += 1;
    }

    /// The quantiles; `None` if no decision was counted.
    pub fn quantiles(&self) -> Option<CostQuantiles> {
        Some(CostQuantiles { p50_us: self.quantile_us(50)?, p99_us: self.quantile_us(99)? })
    }

    /// The upper bound of the bucket in which this percentile lies.
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

impl Serialize for DecisionCosts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.quantiles().serialize(serializer)
    }
}

/// Each of the first values has its own bucket; for the others, the five leading bits choose the bucket.
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
    fn puts_every_value_into_a_narrow_bucket() {
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
    fn finds_the_quantiles() {
        let mut costs = DecisionCosts::default();
        assert_eq!(costs.quantiles(), None);
        for _ in 0..98 {
            costs.record(Duration::from_nanos(8));
        }
        costs.record(Duration::from_micros(1));
        costs.record(Duration::MAX);
        let quantiles = costs.quantiles().unwrap();
        assert_eq!(quantiles.p50_us, 0.008);
        assert!((1.0..1.07).contains(&quantiles.p99_us), "{quantiles:?}");
    }
}
