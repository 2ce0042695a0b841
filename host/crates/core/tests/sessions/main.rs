//! A seeded simulation of device sessions: two or three replicas with the real machine, one store that is slow, away or
//! restarted empty, a network that delays and loses, sockets that open, register, refresh, close and die half-open, replicas
//! that are killed, an operator. After every step the auditor looks at the invariants; when all is quiet again each device
//! must be where it belongs.
//!
//! `SEED=123 cargo test -p pointwork-core --test sessions` runs one seed, `SEEDS=50000` so many. A failure prints the seed,
//! the shortest schedule that fails and its last steps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod auditor;
mod clients;
mod happening;
mod ledger;
mod schedule;
#[path = "../seeded/mod.rs"]
mod seeded;
mod store;
mod storms;
mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::catch_unwind;

use crate::schedule::{Schedule, run, schedules};
use crate::world::{Mutation, World};

const SEEDS: u64 = 2_000;
/// In so many schedules each mutation is found.
const MUTATION_SEEDS: u64 = 10_000;

/// Prints the last steps when a run panics.
struct Reporter<'a>(bool, &'a mut World);

impl Drop for Reporter<'_> {
    #[allow(clippy::print_stderr)]
    fn drop(&mut self) {
        if self.0 && std::thread::panicking() {
            let steps: Vec<&str> = self.1.trace.iter().map(String::as_str).collect();
            eprintln!("the last steps:\n{}", steps.join("\n"));
        }
    }
}

/// Plays a schedule; gives what happened in it.
fn play(seed: u64, schedule: &Schedule, mutation: Option<Mutation>, is_reported: bool) -> BTreeMap<String, usize> {
    let mut world = schedule::world(seed);
    world.mutation = mutation;
    run(Reporter(is_reported, &mut world).1, schedule);
    world.auditor.ends
}

#[test]
fn the_invariants_hold_whatever_happens() {
    let seeds = seeded::seeds(SEEDS);
    let ends: RefCell<BTreeMap<String, usize>> = RefCell::default();
    for seed in &seeds {
        seeded::play(*seed, &schedules(), |schedule, is_reported| {
            for (end, count) in play(*seed, &schedule, None, is_reported) {
                *ends.borrow_mut().entry(end).or_default() += count;
            }
        });
    }
    let ends = ends.into_inner();
    if seeds.len() > 1 {
        // A simulation that never reaches an end proves nothing about it.
        for end in REACHED {
            assert!(ends.get(*end).is_some_and(|count| *count >= 20), "{end} is not reached: {ends:#?}");
        }
    }
}

/// Every kind of end and fault.
const REACHED: &[&str] = &[
    "Accepted Free",
    "Accepted HolderGone",
    "Accepted Settled",
    "Accepted Beside",
    "Accepted Provisional",
    "Accepted Reconciled",
    "Refused Flapping",
    "Refused Quarantined",
    "Refused Reconnecting",
    "Refused Settled",
    "Refused Busy",
    "Refused Contended",
    "Refused Unchecked",
    "Refused Superseded",
    "Refused Auth(Missing)",
    "Refused Auth(BadToken)",
    "Refused Auth(Blocked)",
    "Refused Auth(AlreadyPaired)",
    "Evicted Superseded",
    "Evicted Operator",
    "Refreshed Again",
    "Offline HolderGone",
    "Offline Silent",
    "closed NeverRegistered",
    "closed Refused",
    "closed Evicted",
    "eviction confirmed",
    "half-open",
    "killed",
    "owner Alive",
    "owner Gone",
    "owner Silent",
    "status Offline",
    "status Online",
    "status Provisioning",
    "store away",
    "store emptied",
    "store stuck",
    "swap Won",
    "swap Lost",
    "swap Away",
    "Disconnect",
    "Block",
    "Unblock",
    "Pair",
    "trial over",
    "trial with flips",
    "trial with refusals",
    "trial with failures",
    "trial stranded",
    "trial offline",
    "trial stable",
];

/// The first seed by which a mutation is found, and what is said of it.
fn found(mutation: Mutation) -> (u64, String) {
    let found = (0..MUTATION_SEEDS).find_map(|seed| {
        let panic = catch_unwind(|| play(seed, &seeded::draw(seed, &schedules()), Some(mutation), false)).err()?;
        Some((seed, panic.downcast_ref::<String>().cloned().unwrap_or_default()))
    });
    found.unwrap_or_else(|| panic!("{mutation:?} is not found"))
}

#[test]
#[allow(clippy::print_stdout)]
fn finds_each_mutation() {
    let mutations: [(Mutation, &[&str]); 5] = [
        (Mutation::SwapWithoutEpoch, &["epoch-grows", "one-holder"]),
        (Mutation::EvictBeforeWon, &["one-holder"]),
        (Mutation::EvictedArmsOffline, &["no-false-offline"]),
        (Mutation::RefuseForTheDead, &["not-stranded"]),
        (Mutation::NewcomerNotClosed, &["is not closed"]),
    ];
    for (mutation, invariants) in mutations {
        let (seed, said) = found(mutation);
        println!("{mutation:?}: seed {seed}: {said}");
        assert!(invariants.iter().any(|one| said.contains(one)), "{mutation:?} is found by something else: {said}");
    }
}
