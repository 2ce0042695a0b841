//! Each scenario of devices is played: every invariant holds, with the native rule and with others, and the same seed
//! gives the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use pointwork_core::decisions::SettleVerdict;
use pointwork_simulation::scenario::{SHIPPED, Scenario, SettleScenario, Worlds};
use pointwork_simulation::{NativeSettle, SettleOutcomes, SettleQuestion, SettleRules, settle};

fn scenarios() -> Vec<(&'static str, SettleScenario)> {
    let parsed = SHIPPED.iter().map(|(name, _)| (*name, Scenario::shipped(name).unwrap().unwrap()));
    let of_devices = parsed.filter_map(|(name, scenario)| match scenario.worlds {
        Worlds::Settle(settle) => Some((name, settle)),
        Worlds::Rpc(_) => None,
    });
    of_devices.collect()
}

/// Says anything.
struct Any;

impl SettleRules for Any {
    fn settle(&self, question: &SettleQuestion<'_>) -> SettleVerdict {
        match question.seed % 4 {
            0 => SettleVerdict::Accept,
            1 => SettleVerdict::Refuse((question.seed >> 8) as u32 % 5_000),
            2 => SettleVerdict::Beside((question.seed >> 8) as u32 % 5_000),
            _ => SettleVerdict::Refuse(3_600_000),
        }
    }
}

struct Newest;

impl SettleRules for Newest {
    fn settle(&self, _: &SettleQuestion<'_>) -> SettleVerdict {
        SettleVerdict::Accept
    }
}

fn mean(scenario: &SettleScenario, rules: &dyn SettleRules, seeds: u64, outcome: fn(&SettleOutcomes) -> f64) -> f64 {
    (0..seeds).map(|seed| outcome(&settle(scenario, seed, rules).outcomes)).sum::<f64>() / seeds as f64
}

#[test]
fn every_invariant_holds_whatever_the_rule_says() {
    for (name, scenario) in scenarios() {
        let mut questions = 0;
        for rules in [&NativeSettle as &dyn SettleRules, &Newest, &Any] {
            for seed in 0..200 {
                let report = settle(&scenario, seed, rules);
                assert_eq!(report.broken, None, "{name}, seed {seed}");
                questions += report.questions;
            }
        }
        assert!(questions > 500, "{name}: {questions}");
    }
}

#[test]
fn a_seed_gives_the_same_each_time() {
    for (name, scenario) in scenarios() {
        for seed in 0..20 {
            assert_eq!(settle(&scenario, seed, &NativeSettle), settle(&scenario, seed, &NativeSettle), "{name}");
        }
    }
}

#[test]
fn each_scenario_shows_what_it_is_for() {
    let scenarios = scenarios();
    let of = |name: &str, rules: &dyn SettleRules, outcome: fn(&SettleOutcomes) -> f64| {
        let (_, scenario) = scenarios.iter().find(|(known, _)| *known == name).unwrap();
        mean(scenario, rules, 50, outcome)
    };
    let flips = |name, rules: &dyn SettleRules| of(name, rules, |one| one.flips);
    assert!(flips("eviction-storm", &Newest) > 2.0 * flips("eviction-storm", &NativeSettle));
    assert!(of("eviction-storm", &Newest, |one| one.stable_ms) > 5_000.0);
    assert!(
        flips("spaced-opens", &NativeSettle) > 100.0,
        "each open after the window flips, until a limiter is in its way"
    );
    assert!(flips("moves", &NativeSettle) > 2.0, "a move takes the session from a socket that is alive");
    assert_eq!(
        flips("half-open", &NativeSettle),
        0.0,
        "a half-open socket is not alive, whatever the host takes it for"
    );
    assert!(
        of("flapping-network", &NativeSettle, |one| one.unserved_s) > 3.0,
        "a device without network is not served"
    );
    assert!(of("restarts", &NativeSettle, |one| one.unserved_s) > 0.3);
}

/// A rule that always refuses keeps a dead socket in its place until the host notices: no socket of the device stays
/// open, so it is not stranded by the letter, and still it is not served.
#[test]
fn measures_what_a_device_truly_misses() {
    struct Never;
    impl SettleRules for Never {
        fn settle(&self, _: &SettleQuestion<'_>) -> SettleVerdict {
            SettleVerdict::Refuse(5_000)
        }
    }
    let scenario = Scenario::shipped("half-open").unwrap().unwrap();
    let Worlds::Settle(scenario) = scenario.worlds else { panic!("it is of devices") };
    let missed = |rules| mean(&scenario, rules, 50, |one| one.unserved_s);
    let stranded = |rules| mean(&scenario, rules, 50, |one| one.stranded_s);
    assert!(missed(&Never) > 10.0 * missed(&NativeSettle), "{} and {}", missed(&Never), missed(&NativeSettle));
    assert!(stranded(&NativeSettle) > 0.0, "between a register and its answer");
}
