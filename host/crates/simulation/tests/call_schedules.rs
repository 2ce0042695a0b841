//! Some thousand schedules: every invariant holds, every end and every fault is reached often, and a seed is a
//! schedule.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::thread::available_parallelism;

use pointwork_simulation::{Native, STEPS, Schedule, Sweep};

const SCHEDULES: u64 = 8_000;

#[test]
fn every_invariant_holds_and_everything_is_reached() {
    let threads = available_parallelism().map_or(1, usize::from);
    let swept = Sweep { seeds: 0..SCHEDULES, steps: STEPS, threads }.run(|_| {});
    assert_eq!(swept.failure, None, "repeat: cargo xtask sim --seed SEED");
    assert_eq!(swept.schedules, SCHEDULES);
    let ends = [
        "Cannot call RPC on the same socket",
        "Internal error",
        "RPC method not available",
        "RPC target disconnected",
        "RPC target unreachable",
        "ended with its process",
        "forgotten",
        "operation has timed out",
        "result",
    ];
    for end in ends {
        assert!(swept.ends.of(end) > 2_000, "{end}: {}", swept.ends.of(end));
    }
    assert_eq!(swept.ends.iter().map(|(end, _)| end).filter(|end| !ends.contains(end)).collect::<Vec<_>>(), [""; 0]);
    for (fault, count) in swept.faults.iter() {
        assert!(count > 500, "{fault}: {count}");
    }
    assert_eq!(swept.faults.iter().count(), 33, "{:?}", swept.faults);
}

#[test]
fn a_seed_gives_the_same_trace_each_time() {
    let trace = |seed| {
        let mut lines = Vec::new();
        let report = Schedule::new(seed, STEPS).trace(|line| lines.push(line.to_owned()));
        assert_eq!(report.steps, STEPS);
        assert_eq!(report.broken, None);
        (lines, report.ends, report.faults)
    };
    for seed in 0..20 {
        let (first, second) = (trace(seed), trace(seed));
        assert!(first.0.len() > STEPS as usize, "a trace of {} lines", first.0.len());
        assert_eq!(first, second, "seed {seed}");
        let unheard = Schedule::new(seed, STEPS).run();
        assert_eq!(
            (unheard.ends, unheard.faults),
            (first.1, first.2),
            "seed {seed} is another one when nobody listens"
        );
    }
    assert_ne!(trace(0).0, trace(1).0);
}

#[test]
fn one_schedule_in_four_has_other_settings() {
    let defaults = (0..16).filter(|seed| Native::of_seed(*seed) == Native::default()).count();
    assert_eq!(defaults, 12);
}
