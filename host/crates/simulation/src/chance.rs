//! What is left to chance, from a seed: the same seed gives the same schedule on every machine.

use std::time::Duration;

/// The one source of chance of a schedule.
pub(crate) struct Chance(fastrand::Rng);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(fastrand::Rng::with_seed(seed))
    }

    /// A number below `bound`; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { self.0.usize(..bound) }
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A span from `min_ms` to `max_ms` milliseconds.
    pub(crate) fn span(&mut self, min_ms: u64, max_ms: u64) -> Duration {
        Duration::from_micros(self.0.u64(min_ms * 1_000..=max_ms * 1_000))
    }

    /// One of these; there is at least one.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// One of the given spans in milliseconds, each with its weight, and a moment within it.
    pub(crate) fn weighted(&mut self, spans: &[(usize, u64, u64)]) -> Duration {
        let mut left = self.below(spans.iter().map(|(weight, ..)| weight).sum());
        for (weight, min_ms, max_ms) in spans {
            if left < *weight {
                return self.span(*min_ms, *max_ms);
            }
            left -= weight;
        }
        Duration::ZERO
    }
}
