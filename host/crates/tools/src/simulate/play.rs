//! Plays each world with both rules, on several threads, and returns the outcomes in the order of the seeds.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::bail;
use pointwork_simulation::scenario::Worlds;
use pointwork_simulation::{Schedule, settle};

use super::outcome;
use super::rule::LoadedRule;

/// How many seeds a thread takes at a time.
const CHUNK: u64 = 16;

/// The outcomes of a world with the policy, and with the rule that it is compared with; `None` if the world did not have an outcome.
pub(super) type OutcomePair = [Vec<Option<f64>>; 2];

/// Plays the worlds of these seeds.
///
/// # Errors
/// When an invariant of the machines does not hold, with the lowest such seed that was played; or when a policy exceeds its deadline
/// too often.
pub(super) fn play(
    worlds: &Worlds,
    seeds: Range<u64>,
    rules: [&LoadedRule; 2],
    jobs: usize,
) -> anyhow::Result<Vec<OutcomePair>> {
    let (next, is_over) = (AtomicU64::new(seeds.start), AtomicBool::new(false));
    let played = Mutex::new(Vec::new());
    let work = || {
        while !is_over.load(Ordering::Relaxed) {
            let from = next.fetch_add(CHUNK, Ordering::Relaxed);
            if from >= seeds.end {
                return;
            }
            for seed in from..seeds.end.min(from.saturating_add(CHUNK)) {
                let [policy, against] = rules.map(|rule| || outcomes(worlds, seed, rule));
                let pair = policy().and_then(|policy| Ok([policy, against()?]));
                is_over.fetch_or(pair.is_err() || rules.iter().any(|rule| rule.is_too_slow()), Ordering::Relaxed);
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
    if let Some(rule) = rules.into_iter().find(|rule| rule.is_too_slow()) {
        bail!("{} runs over its deadline again and again: {:?}", rule.info.name, rule.failures());
    }
    let mut played = played.into_inner().unwrap_or_else(PoisonError::into_inner);
    played.sort_by_key(|(seed, _)| *seed);
    played.into_iter().map(|(seed, pair)| pair.map_err(|what| anyhow::anyhow!("seed {seed}: {what}"))).collect()
}

fn outcomes(worlds: &Worlds, seed: u64, rule: &LoadedRule) -> Result<Vec<Option<f64>>, String> {
    let (broken, outcomes) = match worlds {
        Worlds::Settle(scenario) => {
            let report = settle(scenario, seed, rule);
            (report.broken, outcome::settle_values(&report.outcomes))
        }
        Worlds::Rpc(scenario) => {
            let report = Schedule::of_scenario(scenario, seed, rule).run();
            (report.broken, outcome::rpc_values(&report.outcomes))
        }
    };
    match broken {
        None => Ok(outcomes),
        Some(violation) => Err(format!("with {}, what must always hold does not: {violation}", rule.info.name)),
    }
}
