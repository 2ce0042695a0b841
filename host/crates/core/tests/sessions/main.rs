//! A seeded simulation of device sessions: two or three replicas with the real machine, one store that is slow, away or
//! restarted empty, a network that delays and loses, sockets that open, register, refresh, close and die half-open, replicas
//! that are killed, an operator. After every step the auditor looks at the invariants; when all is quiet again each device
//! must be where it belongs.
//!
//! `SEED=123 cargo test -p pointwork-core --test sessions` runs one seed, `SEEDS=50000` so many; a failure prints the seed and
//! its last steps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod auditor;
mod clients;
mod happening;
mod ledger;
#[path = "../simulation/random.rs"]
mod random;
mod schedule;
mod store;
mod storms;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::schedule::run;
use crate::world::{Mutation, World};

const SEEDS: u64 = 2_000;
/// In so many schedules each mutation is found.
const MUTATION_SEEDS: u64 = 10_000;

/// Prints the seed and the last steps when a run panics.
struct Reporter<'a>(u64, &'a mut World);

impl Drop for Reporter<'_> {
    #[allow(clippy::print_stderr)]
    fn drop(&mut self) {
        if std::thread::panicking() && self.1.mutation.is_none() {
            let steps: Vec<&str> = self.1.trace.iter().map(String::as_str).collect();
            eprintln!("SEED={}\nthe last steps:\n{}", self.0, steps.join("\n"));
        }
    }
}

/// Runs one schedule; gives what happened in it.
fn run_seed(seed: u64, mutation: Option<Mutation>) -> BTreeMap<String, usize> {
    let mut world = schedule::world(seed);
    world.mutation = mutation;
    run(Reporter(seed, &mut world).1);
    world.auditor.ends
}

#[test]
fn the_invariants_hold_whatever_happens() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("SEED is a number")],
        Err(_) => (0..std::env::var("SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("a number"))).collect(),
    };
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for seed in &seeds {
        for (end, count) in run_seed(*seed, None) {
            *ends.entry(end).or_default() += count;
        }
    }
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
        let panic = catch_unwind(AssertUnwindSafe(|| run_seed(seed, Some(mutation)))).err()?;
        Some((seed, panic.downcast_ref::<String>().cloned().unwrap_or_default()))
    });
    found.unwrap_or_else(|| panic!("{mutation:?} is not found"))
}

#[test]
#[allow(clippy::print_stdout)]
fn each_mutation_is_found() {
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
