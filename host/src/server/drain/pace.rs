//! When each socket is closed, so that those who come back elsewhere do not come all at once. Pure.

use std::time::Duration;

/// So many connections a second no replica notices: fewer sockets than that take less time to close.
const UNNOTICED_PER_SECOND: u32 = 100;

/// The turns of some sockets, in the order of time.
///
/// The span is cut into as many equal parts as there are sockets, and each has its turn somewhere in its own: so the rate is the
/// same all along, and yet replicas that close at the same time do not beat in step. All turns that have come when it is looked are a
/// batch.
#[derive(Debug)]
pub(super) struct Turns {
    /// Later ones first.
    left: Vec<Duration>,
    passed: Duration,
}

impl Turns {
    /// The turns of `count` sockets from now on, within `span_max` at the most; the same ones for the same `seed`.
    pub(super) fn new(count: usize, span_max: Duration, seed: u64) -> Self {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let part = part(count, span_max);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut left: Vec<_> = (0..count).map(|index| part * index + part.mul_f64(random.f64())).collect();
        left.reverse();
        Self { left, passed: Duration::ZERO }
    }

    /// How many have their turn in the time that `passed` since they were taken last.
    pub(super) fn take(&mut self, passed: Duration) -> usize {
        self.passed += passed;
        let before = self.left.len();
        while self.left.pop_if(|at| *at <= self.passed).is_some() {}
        before - self.left.len()
    }
}

/// How much of the time one socket has.
fn part(count: u32, span_max: Duration) -> Duration {
    (span_max / count.max(1)).min(Duration::from_secs(1) / UNNOTICED_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_secs(5);

    /// How many have their turn in each `bin` of time.
    fn batches(count: usize, span_max: Duration, seed: u64, bin: Duration) -> Vec<usize> {
        let mut turns = Turns::new(count, span_max, seed);
        let bins = u32::try_from(span_max.as_nanos() / bin.as_nanos()).unwrap_or(u32::MAX);
        (0..bins).map(|_| turns.take(bin)).collect()
    }

    #[test]
    fn everyone_has_one_turn_within_the_span() {
        for count in [0, 1, 2, 7, 499, 500, 501, 20_000] {
            for seed in 0..20 {
                assert_eq!(
                    batches(count, SPAN, seed, SPAN).iter().sum::<usize>(),
                    count,
                    "{count} sockets, seed {seed}"
                );
            }
        }
    }

    #[test]
    fn no_batch_is_larger_than_its_share_by_more_than_one() {
        for (count, bin_ms) in [(500, 20), (10_000, 20), (10_000, 250), (100_000, 20)] {
            for seed in 0..20 {
                let batches = batches(count, SPAN, seed, Duration::from_millis(bin_ms));
                let share = count.div_ceil(batches.len());
                // A bin that is no whole number of parts begins within one and ends within another.
                let largest = batches.iter().max().copied().unwrap_or_default();
                assert!(largest <= share + 1, "{largest} of {count} in {bin_ms} ms, seed {seed}");
            }
        }
    }

    #[test]
    fn a_handful_is_closed_as_fast_as_no_replica_notices() {
        let mut turns = Turns::new(10, SPAN, 7);
        assert_eq!(turns.take(Duration::from_millis(100)), 10);
        let mut turns = Turns::new(100, SPAN, 7);
        assert!(turns.take(Duration::from_millis(500)).abs_diff(50) <= 1);
        assert!(turns.take(Duration::from_millis(500)) >= 49);
        assert_eq!(turns.take(SPAN), 0);
    }

    #[test]
    fn the_seed_moves_the_turns_and_nothing_else_does() {
        let turns = |seed| Turns::new(300, SPAN, seed).left;
        assert_eq!(turns(1), turns(1));
        assert_ne!(turns(1), turns(2));
    }

    #[test]
    fn without_a_span_all_have_their_turn_at_once() {
        assert_eq!(Turns::new(1_000, Duration::ZERO, 3).take(Duration::ZERO), 1_000);
    }
}
