//! Plays a schedule for each seed, and shrinks a schedule that fails to the fewest steps that still fail.
//!
//! `SEED=123` plays one seed, `SEEDS=50000` so many. A step is a seed of its own, from which the world draws what happens
//! in it: without an earlier step, a later one still draws the same.
#![allow(dead_code, reason = "each simulation uses its part")]

mod random;

use std::fmt::Debug;
use std::ops::RangeInclusive;

use proptest::collection::{VecStrategy, vec};
use proptest::num::u64::Any;
use proptest::prelude::{Strategy, any};
use proptest::strategy::{NoShrink, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

pub(crate) use self::random::Random;

/// How many shorter schedules are tried when one fails.
const SHRINKS_MAX: u32 = 20_000;

/// The seeds to play: `SEED`, or the first `SEEDS` or `default`.
pub(crate) fn seeds(default: u64) -> Vec<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("SEED and SEEDS are numbers"));
    number("SEED").map_or_else(|| (0..number("SEEDS").unwrap_or(default)).collect(), |seed| vec![seed])
}

/// A step of a schedule.
pub(crate) fn step() -> NoShrink<Any> {
    any::<u64>().no_shrink()
}

/// So many steps of a schedule.
pub(crate) fn steps(count: RangeInclusive<usize>) -> VecStrategy<NoShrink<Any>> {
    vec(step(), count)
}

/// The schedule of a seed.
pub(crate) fn draw<S: Strategy>(seed: u64, schedules: &S) -> S::Value {
    schedules.new_tree(&mut runner(seed)).expect("a schedule").current()
}

/// Plays the schedule of a seed. If it panics, prints the seed and the shortest schedule that panics, and plays that one
/// again, told by `true` to report its last steps.
#[allow(clippy::print_stderr)]
pub(crate) fn play<S: Strategy>(seed: u64, schedules: &S, play: impl Fn(S::Value, bool))
where
    S::Value: Clone + Debug,
{
    let played = runner(seed).run(schedules, |schedule| {
        play(schedule, false);
        Ok(())
    });
    match played {
        Ok(()) => {}
        Err(TestError::Fail(why, shortest)) => {
            eprintln!("SEED={seed}: {why}\nthe shortest schedule that fails: {shortest:?}");
            play(shortest, true);
            panic!("SEED={seed}: {why}");
        }
        Err(TestError::Abort(why)) => panic!("SEED={seed}: {why}"),
    }
}

fn runner(seed: u64) -> TestRunner {
    // No files of failures: the seed says all.
    let config = Config { cases: 1, failure_persistence: None, max_shrink_iters: SHRINKS_MAX, ..Config::default() };
    TestRunner::new_with_rng(config, generator(seed))
}

fn generator(seed: u64) -> TestRng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}
