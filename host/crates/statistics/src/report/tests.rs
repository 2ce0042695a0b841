//! What a report counts, what it leaves out, and what it says.

use super::*;
use crate::outcome::{OutcomeMeasure, SETTLE};

const HORIZON_MS: u64 = 600_000;

fn names(arms: &[&str]) -> Vec<String> {
    arms.iter().map(|arm| (*arm).to_owned()).collect()
}

/// Every tenth device thrashes; the treatment halves that. The arms are as even as can be.
fn devices(many: usize) -> Vec<Unit> {
    let device = |i: usize| {
        let arm = i % 2;
        let flips = if i % 20 < 2 { 10.0 - 5.0 * sequence::count(arm) + sequence::count(i % 3) } else { 0.0 };
        Unit {
            id: format!("device-{i}"),
            arm,
            shares: vec![5_000, 5_000],
            exposed_ms: i as u64,
            values: vec![
                Some(flips),
                (flips > 0.0).then_some(flips * 1_000.0),
                Some(0.0),
                Some(0.0),
                Some(0.0),
                Some(0.0),
            ],
        }
    };
    (0..many).map(device).collect()
}

fn study<'a>(arms: &'a [String], units: &'a [Unit]) -> Study<'a> {
    Study {
        name: "calmer",
        slot: "settle",
        arms,
        outcomes: &SETTLE,
        units,
        horizon_ms: HORIZON_MS,
        now_ms: HORIZON_MS + 10_000,
        guardrails: &[],
        shadow: &[],
    }
}

#[test]
fn an_effect_is_found_and_has_the_right_sign() {
    let (arms, units) = (names(&["control", "treatment"]), devices(2_000));
    let report = report(&study(&arms, &units));
    assert_eq!((report.sample_ratio.verdict, report.counted.as_slice()), (Split::Fair, [1_000, 1_000].as_slice()));
    let flips = &report.outcomes[0];
    assert_eq!(flips.effects[0].verdict, EffectVerdict::Better);
    assert!(flips.effects[0].high.unwrap() < 0.0 && flips.means[1].mean < flips.means[0].mean);
    // Only those that thrash have a time to one stable socket: 100 an arm.
    assert_eq!(report.outcomes[1].means[0].units, 100);
    assert_eq!(report.outcomes[1].effects[0].units, [100, 100]);
    // Nobody was refused: no effect, and no claim of one.
    let refused = &report.outcomes[2].effects[0];
    assert_eq!((refused.verdict, refused.estimate, refused.low), (EffectVerdict::Undecided, Some(0.0), None));
}

#[test]
fn an_effect_is_worse_on_the_other_side_and_different_without_a_better_side() {
    let (arms, units) = (names(&["control", "treatment"]), devices(2_000));
    for (better, verdict) in [(Direction::Higher, EffectVerdict::Worse), (Direction::Neither, EffectVerdict::Different)]
    {
        let mut outcomes = SETTLE.to_vec();
        outcomes[0].better = better;
        let report = report(&Study { outcomes: &outcomes, ..study(&arms, &units) });
        assert_eq!(report.outcomes[0].effects[0].verdict, verdict);
    }
}

#[test]
fn the_order_of_the_units_changes_nothing() {
    let (arms, mut units) = (names(&["control", "treatment"]), devices(500));
    for unit in &mut units {
        unit.exposed_ms /= 100;
    }
    let one = report(&study(&arms, &units));
    fastrand::Rng::with_seed(1).shuffle(&mut units);
    assert_eq!(one, report(&study(&arms, &units)));
}

#[test]
fn a_unit_is_counted_when_its_horizon_is_over_and_exposed_before() {
    let (arms, units) = (names(&["control", "treatment"]), devices(1_000));
    let early = report(&Study { now_ms: HORIZON_MS + 99, ..study(&arms, &units) });
    assert_eq!((early.counted.as_slice(), early.left_out.under_way), ([50, 50].as_slice(), 900));
    assert_eq!(early.sample_ratio.exposed, [500, 500]);
    let effect = &early.outcomes[0].effects[0];
    assert_eq!((effect.verdict, effect.low), (EffectVerdict::TooEarly, None));
    assert!(early.to_string().contains("too early (50 of 60 units)"), "{early}");
    // What was counted then is counted now with the same numbers: later units only come after.
    let later = report(&Study { units: &units[..100], ..study(&arms, &units) });
    assert_eq!(early.outcomes, later.outcomes);
}

#[test]
fn a_broken_split_reports_no_effect_and_says_why() {
    let (arms, mut units) = (names(&["control", "treatment"]), devices(2_000));
    units.retain(|unit| unit.arm == 0 || unit.exposed_ms % 5 != 1);
    let broken = report(&study(&arms, &units));
    assert_eq!((broken.sample_ratio.verdict, broken.outcomes.len()), (Split::Broken, 0));
    assert!(broken.to_string().contains("assignment or logging is broken"), "{broken}");
}

#[test]
fn leaves_out_and_counts_repeated_records_and_those_that_do_not_fit() {
    let (arms, mut units) = (names(&["control", "treatment"]), devices(400));
    units[0].arm = 2;
    units[1].shares = vec![5_000, 4_999];
    units[2].values.pop();
    units[3].values[0] = Some(f64::NAN);
    units[4].id = "device-5".to_owned();
    units[5].exposed_ms = 3;
    let report = report(&study(&arms, &units));
    assert_eq!(report.left_out, LeftOut { under_way: 0, unfit: 4, repeated: 1 });
    assert_eq!(report.sample_ratio.exposed.iter().sum::<usize>(), 395);
}

/// While an arm has no weight there is nothing to compare: such units are exposed, and in no effect.
#[test]
fn units_exposed_while_the_treatment_was_paused_are_in_no_effect() {
    let (arms, mut units) = (names(&["control", "treatment"]), devices(400));
    for unit in units.iter_mut().filter(|unit| unit.exposed_ms < 100) {
        (unit.arm, unit.shares) = (0, vec![10_000, 0]);
    }
    let report = report(&study(&arms, &units));
    assert_eq!(report.sample_ratio.verdict, Split::Fair);
    assert_eq!(report.outcomes[0].means[0].units, 250);
    assert_eq!(report.outcomes[0].effects[0].units, [150, 150]);
}

/// Three arms at 50/30/20: each treatment is compared with control alone, as if there were no other, at half of alpha.
#[test]
fn each_of_several_treatments_is_compared_with_control() {
    let arms = names(&["control", "calm", "calmer"]);
    let unit = |i: usize| {
        let arm = [0, 1, 0, 1, 0, 2, 0, 1, 0, 2][i % 10];
        let shares = vec![5_000, 3_000, 2_000];
        let values = vec![Some([4.0, 4.0, 1.0][arm] + sequence::count(i * i % 7))];
        Unit { id: i.to_string(), arm, shares, exposed_ms: i as u64, values }
    };
    let units: Vec<Unit> = (0..2_000).map(unit).collect();
    let all = report(&Study { outcomes: &SETTLE[..1], ..study(&arms, &units) });
    assert_eq!(all.alpha, 0.025);
    let [calm, calmer] = [&all.outcomes[0].effects[0], &all.outcomes[0].effects[1]];
    assert_eq!((calm.units, calm.verdict), ([1_000, 600], EffectVerdict::Undecided));
    assert_eq!((calmer.units, calmer.verdict), ([1_000, 400], EffectVerdict::Better));
    // The same without the other treatment: 5,000 and 2,000 are five and two sevenths.
    let mut alone = Sequence::default();
    for unit in units.iter().filter(|unit| unit.arm != 1) {
        let value = unit.values[0].unwrap();
        alone.add(Observation { treated: unit.arm == 2, probability: 2.0 / 7.0, value });
    }
    assert!((alone.interval(0.025).unwrap().low - calmer.low.unwrap()).abs() < 1e-12);
}

#[test]
fn is_written_as_a_table_and_as_json() {
    let (arms, units) = (names(&["control", "treatment"]), devices(2_000));
    let guardrail = GuardrailReading {
        name: "stranded".to_owned(),
        arm: "treatment".to_owned(),
        value: 0.5,
        limit: 10.0,
        crossed_ms: None,
    };
    let disagreement = Disagreement {
        arm: "shadow".to_owned(),
        served: "refuse settling".to_owned(),
        shadow: "accept".to_owned(),
        count: 7,
    };
    let study = Study { guardrails: &[guardrail], shadow: &[disagreement], ..study(&arms, &units) };
    let report = report(&study);
    let text = report.to_string();
    for line in [
        "calmer (slot settle): each unit is counted once, 10 min after its exposure",
        "control       1000    1000.0     1000",
        "split: fair (chi-square 0.00, p = 1.000)",
    ] {
        assert!(text.lines().any(|is| is.split_whitespace().eq(line.split_whitespace())), "{line}\n{text}");
    }
    let json = serde_json::to_string(&report).unwrap();
    assert!(json.contains(r#"{"name":"flips","measure":"count","better":"lower","means":[{"units":1000,"#), "{json}");
    assert_eq!(serde_json::from_str::<ExperimentReport>(&json).unwrap(), report);
    assert_eq!(report.outcomes[1].outcome.measure, OutcomeMeasure::Milliseconds);
}
