//! Generated inputs: each is asked twice in one instance, which has answered all before it, and once in a fresh one. All three
//! must give one verdict, for the host may ask any instance of any replica.

use fastrand::Rng;
use pointwork_policy::{AskError, Module};

use super::Tally;
use crate::{
    questions::Generated,
    replay::{Costs, Told, one_line},
};

pub(super) fn check<S: Told + Generated>(module: &Module<S>, seed: u64, count: u64) -> (Tally, Costs) {
    let (mut tally, mut costs) = (Tally::default(), Costs::default());
    let (mut old, mut fresh) = (module.asker(), module.asker());
    for seed in (0..count).map(|step| seed.wrapping_add(step)) {
        tally.tried += 1;
        let question = S::question(&mut Rng::with_seed(seed));
        let first = old.ask(&question);
        costs.note(first.cost);
        let again = old.ask(&question);
        fresh.renew();
        let anew = fresh.ask(&question);
        if let Some(problem) = problem(first.verdict, again.verdict, anew.verdict) {
            tally.fail(|| format!("seed {seed}: {problem} to {}", one_line(&question)));
        }
    }
    (tally, costs)
}

type Verdict<V> = Result<V, AskError>;

fn problem<V: PartialEq + serde::Serialize>(first: Verdict<V>, again: Verdict<V>, anew: Verdict<V>) -> Option<String> {
    let (first, again, anew) = match (first, again, anew) {
        (Ok(first), Ok(again), Ok(anew)) => (first, again, anew),
        (Err(error), _, _) => return Some(format!("no verdict: {error}")),
        (_, Err(error), _) => return Some(format!("no verdict the second time: {error}")),
        (_, _, Err(error)) => return Some(format!("no verdict in a fresh instance: {error}")),
    };
    if first != again {
        return Some(format!("{} and, asked again, {}", one_line(&first), one_line(&again)));
    }
    if first != anew {
        return Some(format!("{} and, in a fresh instance, {}", one_line(&first), one_line(&anew)));
    }
    None
}
