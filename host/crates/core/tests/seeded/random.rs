//! Draws what a world decides as it goes: the same seed gives the same draws on every machine.

use proptest::prelude::Rng;
use proptest::test_runner::TestRng;

pub(crate) struct Random(TestRng);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(super::generator(seed))
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}
