//! A seeded simulation of rollouts: three replicas with the real machine, a store that is slow and is emptied, notes that are lost,
//! replicas that are killed at any moment (between prepared and switch too) and join late, modules that some cannot prepare or that
//! hang, breakers that trip, two operators at once. After every write the auditor looks at the invariants of `rollout`; when all is
//! quiet again the replicas must agree.
//!
//! `SEED=123 cargo test -p pointwork-core --test rollout` runs one seed, `SEEDS=50000` so many. A failure prints the seed, the
//! shortest schedule that fails and its last events.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod auditor;
#[path = "../seeded/mod.rs"]
mod seeded;
mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::Strategy;

use crate::world::{Mutation, World};

const SEEDS: u64 = 1_000;
/// In so many runs each mutation is found.
const MUTATION_SEEDS: u64 = 4_000;

/// Operators, faults and what else disturbs at most, one after another.
const DISTURBANCES_MAX: usize = 160;

fn schedules() -> impl Strategy<Value = Vec<u64>> {
    seeded::steps(0..=DISTURBANCES_MAX)
}

/// Plays a schedule; gives what happened in it.
fn run(seed: u64, schedule: Vec<u64>, mutation: Option<Mutation>, is_reported: bool) -> BTreeMap<&'static str, usize> {
    let mut world = World::new(seed, schedule, mutation);
    let played = catch_unwind(AssertUnwindSafe(|| world.play()));
    if let Err(panic) = played {
        #[allow(clippy::print_stderr)]
        if is_reported {
            eprintln!("the last events:\n{}", world.trace.join("\n"));
        }
        std::panic::resume_unwind(panic);
    }
    world.auditor.happened
}

#[test]
fn the_invariants_hold_whatever_happens() {
    let seeds = seeded::seeds(SEEDS);
    let happened: RefCell<BTreeMap<&'static str, usize>> = RefCell::default();
    for seed in &seeds {
        seeded::play(*seed, &schedules(), |schedule, is_reported| {
            for (what, count) in run(*seed, schedule, None, is_reported) {
                *happened.borrow_mut().entry(what).or_default() += count;
            }
        });
    }
    let happened = happened.into_inner();
    if seeds.len() as u64 >= SEEDS {
        let expected = [
            "moved",
            "forced",
            "failed",
            "timeout",
            "undone",
            "ended",
            "quarantined",
            "retried",
            "restored",
            "lost a race",
            "killed",
            "joined",
            "emptied",
            "push refused",
        ];
        for what in expected {
            assert!(happened.get(what).is_some_and(|count| *count > 20), "{what} is hardly tried: {happened:?}");
        }
    }
}

#[test]
fn finds_each_mutation() {
    for mutation in [Mutation::NothingCompared, Mutation::PeersForgotten, Mutation::EveryoneElsePrepared] {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let found = (0..MUTATION_SEEDS)
            .any(|seed| catch_unwind(|| run(seed, seeded::draw(seed, &schedules()), Some(mutation), false)).is_err());
        std::panic::set_hook(hook);
        assert!(found, "{mutation:?} is not found");
    }
}
