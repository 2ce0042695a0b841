//! Two thousand random schedules of devices: every invariant holds, everything is reached often, and each mistake is
//! found.
//!
//! `SEED=123 cargo test -p pointwork-simulation random_schedules` plays one seed, `SEEDS=50000` so many. A failure
//! prints the seed, the shortest schedule that fails and what happened last in it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::flaws::DeviceFlaw;
use super::schedule::{Disturbance, play, schedules};
use super::seeded;
use crate::counts::Counts;
use crate::violation::Violation;

const SEEDS: u64 = 2_000;
/// In so many schedules each mistake is found.
const FLAW_SEEDS: u64 = 10_000;
/// How many of the last lines of a failing schedule are shown.
const LAST_LINES: usize = 300;

/// Plays a schedule in which every invariant must hold; gives what happened in it.
fn counts(seed: u64, disturbances: &[Disturbance]) -> Counts {
    let report = play(seed, disturbances, None, None);
    if let Some(violation) = report.broken {
        panic!("{violation}");
    }
    report.counts
}

/// Prints what happens last in a schedule that fails.
#[allow(clippy::print_stderr)]
fn print_last_lines(seed: u64, disturbances: &[Disturbance]) {
    let mut last: VecDeque<String> = VecDeque::new();
    let mut listener = |line: &str| {
        last.truncate(LAST_LINES - 1);
        last.push_front(line.to_owned());
    };
    let played = catch_unwind(AssertUnwindSafe(|| play(seed, disturbances, None, Some(&mut listener))));
    let last: Vec<String> = last.into_iter().rev().collect();
    eprintln!("the last steps:\n{}", last.join("\n"));
    if let Err(panic) = played {
        resume_unwind(panic);
    }
}

#[test]
fn the_invariants_hold_whatever_happens() {
    let seeds = seeded::seeds(SEEDS);
    let all: RefCell<Counts> = RefCell::default();
    for seed in &seeds {
        seeded::play(*seed, &schedules(), |schedule, is_reported| {
            if is_reported {
                print_last_lines(*seed, &schedule);
            }
            all.borrow_mut().add(&counts(*seed, &schedule));
        });
    }
    let all = all.into_inner();
    if seeds.len() > 1 {
        // A simulation that never reaches an end proves nothing about it.
        for what in REACHED {
            assert!(all.of(what) >= 20, "{what} is not reached: {all:#?}");
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

/// The first seed by which a mistake is found, and the invariant that it breaks.
fn find(flaw: DeviceFlaw) -> (u64, Violation) {
    let run = |seed| play(seed, &seeded::draw(seed, &schedules()), Some(flaw), None).broken;
    let found = (0..FLAW_SEEDS).find_map(|seed| Some((seed, run(seed)?)));
    found.unwrap_or_else(|| panic!("{flaw:?} is not found"))
}

#[test]
#[allow(clippy::print_stdout)]
fn finds_each_mistake() {
    let flaws: [(DeviceFlaw, &[&str]); 5] = [
        (DeviceFlaw::SwapWithoutEpoch, &["epoch-grows", "one-holder"]),
        (DeviceFlaw::EvictBeforeWon, &["one-holder"]),
        (DeviceFlaw::EvictedArmsOffline, &["no-false-offline"]),
        (DeviceFlaw::RefuseForTheDead, &["not-stranded"]),
        (DeviceFlaw::NewcomerNotClosed, &["refused-is-closed"]),
    ];
    for (flaw, invariants) in flaws {
        let (seed, violation) = find(flaw);
        println!("{flaw:?}: seed {seed}: {violation}");
        assert!(invariants.contains(&violation.invariant), "{flaw:?} is found by something else: {violation}");
    }
}

#[test]
fn a_seed_gives_the_same_each_time() {
    for seed in 0..20 {
        let schedule = seeded::draw(seed, &schedules());
        let traced = |seed| {
            let mut lines = Vec::new();
            let report = play(seed, &schedule, None, Some(&mut |line: &str| lines.push(line.to_owned())));
            (lines, report.counts)
        };
        assert_eq!(traced(seed), traced(seed), "seed {seed}");
        assert_eq!(play(seed, &schedule, None, None).counts, traced(seed).1, "seed {seed}");
    }
}
