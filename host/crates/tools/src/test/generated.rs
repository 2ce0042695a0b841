//! Tests a policy with generated questions.
//!
//! Each question is asked twice in one instance, which has answered all questions before it, and once in a fresh instance. The three
//! verdicts must be equal, because the host may ask any instance of any replica.

use fastrand::Rng;
use pointwork_policy::{AskError, Module, record::Recorded};
use serde::Serialize;

use super::report::InputResults;
use crate::{decision_costs::DecisionCosts, questions::Generated, verdict_kind::shortened_json};

/// Tests `count` questions, which are generated from `seed` and the seeds after it.
pub(super) fn check<S: Recorded + Generated>(
    module: &Module<S>,
    seed: u64,
    count: u64,
) -> (InputResults, DecisionCosts) {
    let (mut results, mut costs) = (InputResults::default(), DecisionCosts::default());
    let (mut old, mut fresh) = (module.asker(), module.asker());
    for seed in (0..count).map(|step| seed.wrapping_add(step)) {
        results.tried += 1;
        let question = S::question(&mut Rng::with_seed(seed));
        let first = old.ask(&question);
        costs.record(first.cost);
        let again = old.ask(&question);
        fresh.renew();
        let anew = fresh.ask(&question);
        if let Err(problem) = compare(first.verdict, again.verdict, anew.verdict) {
            results.add_failure(|| format!("seed {seed}: {problem} to {}", shortened_json(&question)));
        }
    }
    (results, costs)
}

type Verdict<V> = Result<V, AskError>;

fn compare<V: PartialEq + Serialize>(first: Verdict<V>, again: Verdict<V>, anew: Verdict<V>) -> Result<(), String> {
    let first = first.map_err(|error| format!("no verdict: {error}"))?;
    let again = again.map_err(|error| format!("no verdict the second time: {error}"))?;
    let anew = anew.map_err(|error| format!("no verdict in a fresh instance: {error}"))?;
    if first != again {
        return Err(format!("{} and, asked again, {}", shortened_json(&first), shortened_json(&again)));
    }
    if first != anew {
        return Err(format!("{} and, in a fresh instance, {}", shortened_json(&first), shortened_json(&anew)));
    }
    Ok(())
}
