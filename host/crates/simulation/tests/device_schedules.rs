//! Some thousand random schedules of devices: every invariant holds, everything is reached often, and each mistake is found.
//!
//! `SEED=123 cargo test -p pointwork-simulation --test device_schedules` runs one seed, `SEEDS=50000` so many. A failure
//! prints the seed and what happened last in it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pointwork_simulation::{Counts, DeviceFlaw, DeviceReport, DeviceSchedule, Violation};

const SEEDS: u64 = 2_000;
/// In so many schedules each mistake is found.
const FLAW_SEEDS: u64 = 10_000;
/// How many of the last lines of a failing schedule are shown.
const LAST_LINES: usize = 300;

/// Runs one schedule in which every invariant must hold; gives what happened in it.
fn counts(seed: u64) -> Counts {
    let schedule = DeviceSchedule { seed, flaw: None };
    let why = match catch_unwind(|| schedule.run()) {
        Ok(DeviceReport { broken: None, counts }) => return counts,
        Ok(report) => format!("{:?}", report.broken),
        Err(_) => "a machine panics".to_owned(),
    };
    let mut last: VecDeque<String> = VecDeque::new();
    let again = AssertUnwindSafe(|| {
        schedule.trace(|line| {
            last.truncate(LAST_LINES - 1);
            last.push_front(line.to_owned());
        })
    });
    let _ = catch_unwind(again);
    let last: Vec<String> = last.into_iter().rev().collect();
    panic!("SEED={seed}\nthe last steps:\n{}\n{why}", last.join("\n"));
}

#[test]
fn the_invariants_hold_whatever_happens() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("SEED is a number")],
        Err(_) => (0..std::env::var("SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("a number"))).collect(),
    };
    let mut all = Counts::default();
    for seed in &seeds {
        all.add(&counts(*seed));
    }
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
fn found(flaw: DeviceFlaw) -> (u64, Violation) {
    let run = |seed| DeviceSchedule { seed, flaw: Some(flaw) }.run().broken;
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
        let (seed, violation) = found(flaw);
        println!("{flaw:?}: seed {seed}: {violation}");
        assert!(invariants.contains(&violation.invariant), "{flaw:?} is found by something else: {violation}");
    }
}

#[test]
fn a_seed_gives_the_same_each_time() {
    for seed in 0..20 {
        let traced = |seed| {
            let mut lines = Vec::new();
            let report = DeviceSchedule { seed, flaw: None }.trace(|line| lines.push(line.to_owned()));
            (lines, report.counts)
        };
        assert_eq!(traced(seed), traced(seed), "seed {seed}");
        assert_eq!(DeviceSchedule { seed, flaw: None }.run().counts, traced(seed).1, "seed {seed}");
    }
}
