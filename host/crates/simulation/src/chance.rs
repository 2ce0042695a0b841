//! Draws random numbers one after the other from a seed. The same seed gives the same numbers on every machine.

use std::time::Duration;

use crate::draws::{Drawn, Draws};
use crate::scenario::Span;

/// The source of random numbers of a schedule. In a scenario it is reset by name before each draw that matters: then
/// the draw does not depend on earlier ones, and so not on a policy that made one more draw necessary.
pub(crate) struct Chance(fastrand::Rng, Option<Draws>);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(fastrand::Rng::with_seed(seed), None)
    }

    /// For a scenario.
    pub(crate) fn by_name(seed: u64) -> Chance {
        Chance(fastrand::Rng::with_seed(seed), Some(Draws::new(seed)))
    }

    /// What is drawn next is the `nth` of its kind of `whom`. Without a scenario there is one stream of chance, and no
    /// names.
    pub(crate) fn name(&mut self, what: Drawn, whom: u64, nth: u64) {
        if let Some(draws) = self.1 {
            self.0 = fastrand::Rng::with_seed(draws.bits(what, whom, nth));
        }
    }

    /// A number of a span.
    pub(crate) fn number(&mut self, span: Span) -> u64 {
        self.0.u64(span.min..=span.max)
    }

    /// True so many times in a hundred.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.0.u64(..100) < percent
    }

    /// A number below `bound`; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { self.0.usize(..bound) }
    }

    /// A number below `bound`, which is not 0.
    #[cfg(test)]
    pub(crate) fn below_u64(&mut self, bound: u64) -> u64 {
        self.0.u64(..bound)
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

    /// One of these by its weight; `None` if all weights are 0.
    pub(crate) fn weighed<'t, T>(&mut self, from: &'t [T], weight: impl Fn(&T) -> usize) -> Option<&'t T> {
        let mut left = self.below(from.iter().map(&weight).sum());
        from.iter().find(|one| {
            let weight = weight(one);
            let is_here = left < weight;
            left = left.saturating_sub(weight);
            is_here
        })
    }

    /// One of the given spans in milliseconds, each with its weight, and a moment within it.
    pub(crate) fn weighted(&mut self, spans: &[(usize, u64, u64)]) -> Duration {
        let span = self.weighed(spans, |(weight, ..)| *weight);
        span.map_or(Duration::ZERO, |(_, min_ms, max_ms)| self.span(*min_ms, *max_ms))
    }
}
