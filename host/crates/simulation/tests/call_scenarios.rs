//! Each scenario of calls is played: every invariant holds, with the native rules and with others, and the same seed
//! gives the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use pointwork_core::decisions::{Absence, Call, Candidate, Choice, Doubt, Verdict};
use pointwork_simulation::scenario::{RpcScenario, SHIPPED, Scenario, Worlds};
use pointwork_simulation::{Native, RpcOutcomes, RuleMoment, Rules, Schedule};

fn scenarios() -> Vec<(&'static str, RpcScenario)> {
    let parsed = SHIPPED.iter().map(|(name, _)| (*name, Scenario::shipped(name).unwrap().unwrap()));
    let of_calls = parsed.filter_map(|(name, scenario)| match scenario.worlds {
        Worlds::Rpc(rpc) => Some((name, rpc)),
        Worlds::Settle(_) => None,
    });
    of_calls.collect()
}

fn scenario(name: &str) -> RpcScenario {
    scenarios().into_iter().find(|(known, _)| *known == name).unwrap().1
}

/// Says anything.
struct Any;

impl Rules for Any {
    fn choose(&self, at: RuleMoment, _: &str, _: &Call, candidates: &[Candidate]) -> Choice {
        match at.seed % 10 {
            0 => Choice::Reject,
            _ => Choice::Pick((at.seed >> 8) as u32 % candidates.len() as u32),
        }
    }

    fn wait(&self, at: RuleMoment, _: &str, _: &Call, _: &Absence) -> u32 {
        [0, 1, 500, 3_600_000][at.seed as usize % 4]
    }

    fn judge(&self, at: RuleMoment, _: &str, _: &Call, _: &Doubt) -> Verdict {
        [Verdict::Abort, Verdict::Hold(0), Verdict::Hold(700), Verdict::Hold(3_600_000)][at.seed as usize % 4]
    }

    fn resume_ms(&self) -> Option<u32> {
        None
    }

    fn trusts_silence(&self) -> bool {
        true
    }
}

/// Nobody waits for anything.
struct Hasty;

impl Rules for Hasty {
    fn choose(&self, _: RuleMoment, _: &str, _: &Call, _: &[Candidate]) -> Choice {
        Choice::Pick(0)
    }

    fn wait(&self, _: RuleMoment, _: &str, _: &Call, _: &Absence) -> u32 {
        0
    }

    fn judge(&self, _: RuleMoment, _: &str, _: &Call, _: &Doubt) -> Verdict {
        Verdict::Abort
    }

    fn resume_ms(&self) -> Option<u32> {
        None
    }

    fn trusts_silence(&self) -> bool {
        true
    }
}

fn mean(scenario: &RpcScenario, rules: &dyn Rules, outcome: impl Fn(&RpcOutcomes) -> f64) -> f64 {
    const SEEDS: u64 = 40;
    let worlds = (0..SEEDS).map(|seed| Schedule::of_scenario(scenario, seed, rules).run());
    worlds.map(|report| outcome(&report.outcomes)).sum::<f64>() / SEEDS as f64
}

#[test]
fn every_invariant_holds_whatever_the_rules_say() {
    for (name, scenario) in scenarios() {
        for rules in [&Native::default() as &dyn Rules, &Hasty, &Any] {
            for seed in 0..60 {
                let report = Schedule::of_scenario(&scenario, seed, rules).run();
                assert_eq!(report.broken, None, "{name}, seed {seed}");
                let RpcOutcomes { calls, answered, errors, .. } = report.outcomes;
                let all = answered + errors.iter().sum::<f64>();
                assert!(calls > 50 && (all - 100.0).abs() < 1e-6, "{name}, seed {seed}: {:?}", report.outcomes);
            }
        }
    }
}

#[test]
fn a_seed_gives_the_same_each_time() {
    for (name, scenario) in scenarios() {
        for seed in 0..5 {
            let play = || {
                let report = Schedule::of_scenario(&scenario, seed, &Native::default()).run();
                (report.outcomes, report.ends, report.faults)
            };
            assert_eq!(play(), play(), "{name}, seed {seed}");
        }
    }
}

#[test]
fn measures_calls_that_were_given_up_too_soon() {
    let wrongly = |name, rules: &dyn Rules| mean(&scenario(name), rules, |one| one.aborted_wrongly);
    for name in ["rpc-reconnect-storm", "rpc-flapping"] {
        let (hasty, native) = (wrongly(name, &Hasty), wrongly(name, &Native::default()));
        assert!(hasty > 2.0 * native && hasty > 1.0, "{name}: {hasty} % and {native} %");
    }
    let waited = |rules: &dyn Rules| mean(&scenario("rpc-reconnect-storm"), rules, |one| one.waited_ms);
    assert!(waited(&Native::default()) > 10.0 * waited(&Hasty).max(1.0));
    let calm = mean(&scenario("rpc-load"), &Native::default(), |one| one.errors[1] + one.errors[2]);
    assert_eq!(calm, 0.0, "nothing goes wrong under mere load");
}
