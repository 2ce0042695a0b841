//! Plays the worlds with both rules, on several threads, with the outcomes in the order of the seeds.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::bail;
use pointwork_simulation::scenario::Worlds;
use pointwork_simulation::{Schedule, Violation, settle};

use super::outcome;
use super::side::Side;

/// Seeds that one thread takes at once.
const CHUNK: u64 = 16;

/// What came of a world with either rule; an outcome that a world did not have is `None`.
pub(super) struct Pair {
    /// With the rule that is tried.
    pub(super) policy: Vec<Option<f64>>,
    /// With the one that it is compared with.
    pub(super) against: Vec<Option<f64>>,
}

/// The worlds of these seeds, in their order.
///
/// # Errors
/// When an invariant of the machines does not hold, with the least such seed that was played; or when a policy runs over its
/// deadline again and again.
pub(super) fn play(worlds: &Worlds, seeds: Range<u64>, sides: [&Side; 2], jobs: usize) -> anyhow::Result<Vec<Pair>> {
    let (next, is_over) = (AtomicU64::new(seeds.start), AtomicBool::new(false));
    let played = Mutex::new(Vec::new());
    let work = || {
        while !is_over.load(Ordering::Relaxed) {
            let from = next.fetch_add(CHUNK, Ordering::Relaxed);
            if from >= seeds.end {
                return;
            }
            for seed in from..seeds.end.min(from.saturating_add(CHUNK)) {
                let pair = play_one(worlds, seed, sides);
                is_over.fetch_or(pair.is_err() || sides.iter().any(|side| side.is_hopeless()), Ordering::Relaxed);
                played.lock().unwrap_or_else(PoisonError::into_inner).push((seed, pair));
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work);
        }
    });
    if let Some(side) = sides.into_iter().find(|side| side.is_hopeless()) {
        bail!("{} runs over its deadline again and again: {:?}", side.info.name, side.failures());
    }
    let mut played = played.into_inner().unwrap_or_else(PoisonError::into_inner);
    played.sort_by_key(|(seed, _)| *seed);
    played.into_iter().map(|(seed, pair)| pair.map_err(|what| anyhow::anyhow!("seed {seed}: {what}"))).collect()
}

fn play_one(worlds: &Worlds, seed: u64, [policy, against]: [&Side; 2]) -> Result<Pair, String> {
    Ok(Pair { policy: outcomes(worlds, seed, policy)?, against: outcomes(worlds, seed, against)? })
}

fn outcomes(worlds: &Worlds, seed: u64, side: &Side) -> Result<Vec<Option<f64>>, String> {
    match worlds {
        Worlds::Settle(scenario) => {
            let report = settle(scenario, seed, side);
            match report.broken {
                None => Ok(outcome::of_settle(&report.outcomes)),
                Some(violation) => Err(broken(side, &violation)),
            }
        }
        Worlds::Rpc(scenario) => {
            let report = Schedule::of_scenario(scenario, seed, side).run();
            match report.broken {
                None => Ok(outcome::of_rpc(&report.outcomes)),
                Some(violation) => Err(broken(side, &violation)),
            }
        }
    }
}

fn broken(side: &Side, violation: &Violation) -> String {
    format!("with {}, what must always hold does not: {violation}", side.info.name)
}
