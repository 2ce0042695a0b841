//! Assignment, and the changes of experiments.
#![allow(clippy::unwrap_used)]

use super::changes::{EXPERIMENTS_MAX, WeightsError};
use super::trial::ExposedDevice;
use super::*;

pub(crate) fn experiment(name: &str, weights: &[u32]) -> Experiment {
    let names = ["control", "treatment", "second"];
    let arms = names[..weights.len()].iter().map(|name| Arm { name: (*name).to_owned(), module: ArmModule::Current });
    Experiment {
        name: name.to_owned(),
        slot: Slot::Settle,
        salt: "salt".to_owned(),
        arms: arms.collect(),
        weights: weights.to_vec(),
        status: ExperimentStatus::Running,
        shadow_only: false,
        horizon_ms: 60_000,
        window_ms: 2_500,
        silence_ms: 25_000,
        guardrails: Guardrails::default(),
        created_ms: 1,
        ended_ms: None,
        version: 0,
    }
}

fn one() -> Experiments {
    Experiments::default().create(experiment("e", &[9_500, 500])).unwrap()
}

fn keys() -> impl Iterator<Item = String> {
    (0..100_000).map(|number| format!("device-{number}"))
}

/// Known answers: they may never change (`printf 'pointwork bucket v1\0s\0tablet-1' | sha256sum`: 0x497baa9707d5c715 % 10000).
#[test]
fn buckets_are_stable() {
    assert_eq!((bucket("s", "tablet-1"), bucket("s", "tablet-2"), bucket("", "")), (4_277, 7_792, 8_026));
    assert_eq!(0x497b_aa97_07d5_c715_u64 % 10_000, 4_277);
}

#[test]
fn a_greater_weight_moves_no_key_out_of_the_treatment() {
    let (few, many) = (experiment("e", &[9_500, 500]), experiment("e", &[8_000, 2_000]));
    let (mut before, mut after) = (0, 0);
    for key in keys() {
        let (was, is) = (few.arm_of(&key), many.arm_of(&key));
        assert!(was == 0 || is == 1, "{key} moved out of the treatment");
        (before, after) = (before + was, after + is);
    }
    // Within five standard deviations of 5 % and 20 %.
    assert!((4_655..5_345).contains(&before) && (19_367..20_633).contains(&after), "{before} {after}");
    let other = Experiment { salt: "other".to_owned(), ..few.clone() };
    assert!(keys().any(|key| few.arm_of(&key) != other.arm_of(&key)));
}

#[test]
fn of_two_treatments_the_first_keeps_its_keys_whatever_the_last_gets() {
    let weights: [&[u32]; 3] = [&[8_000, 1_000, 1_000], &[4_000, 1_000, 5_000], &[9_000, 1_000, 0]];
    let [a, b, c] = weights.map(|weights| experiment("e", weights));
    for key in keys() {
        let [a, b, c] = [&a, &b, &c].map(|experiment| experiment.arm_of(&key));
        assert_eq!((a == 1, a == 1), (b == 1, c == 1), "{key}");
        assert!(a != 2 || b == 2, "{key}");
    }
}

#[test]
fn rejects_an_experiment_that_is_not_sound() {
    let create = |change: fn(&mut Experiment)| {
        let mut wrong = experiment("new", &[5_000, 5_000]);
        change(&mut wrong);
        Experiments::default().create(wrong)
    };
    assert!(create(|_| {}).is_ok());
    assert_eq!(create(|one| one.name = "A".into()), Err(CreateError::Name("A".into())));
    assert!(matches!(create(|one| one.name.clear()), Err(CreateError::Name(_))));
    assert!(matches!(create(|one| one.name = "a".repeat(65)), Err(CreateError::Name(_))));
    assert!(matches!(create(|one| one.arms[1].name = "x:y".into()), Err(CreateError::Name(_))));
    assert_eq!(create(|one| one.salt = "a\0b".into()), Err(CreateError::Salt));
    assert_eq!(create(|one| one.arms[1].name = "control".into()), Err(CreateError::Arms));
    assert_eq!(create(|one| one.arms.truncate(1)), Err(CreateError::Arms));
    assert_eq!(create(|one| one.weights = vec![5_000, 5_001]), Err(WeightsError::Sum { arms: 2 }.into()));
    assert_eq!(create(|one| one.weights = vec![10_000]), Err(WeightsError::Sum { arms: 2 }.into()));
    assert_eq!(create(|one| one.weights = vec![u32::MAX, 10_001]), Err(WeightsError::Sum { arms: 2 }.into()));
    assert_eq!(create(|one| one.horizon_ms = 999), Err(CreateError::Horizon));
    assert_eq!(create(|one| one.guardrails.failures_share_max = Some(f64::NAN)), Err(CreateError::Guardrail));
}

#[test]
fn one_runs_in_a_slot_and_names_are_not_used_twice() {
    let one = one();
    assert_eq!((one.version, one.list[0].version), (1, 1));
    assert_eq!(one.create(experiment("e", &[5_000, 5_000])), Err(CreateError::Taken("e".into())));
    let busy = CreateError::Busy { slot: Slot::Settle, running: "e".into() };
    assert_eq!(one.create(experiment("f", &[5_000, 5_000])), Err(busy));
    let paused = one.pause("e").unwrap();
    let two = paused.create(experiment("f", &[5_000, 5_000])).unwrap();
    assert_eq!(two.resume("e"), Err(ChangeError::Busy { slot: Slot::Settle, running: "f".into() }));
    let other_slot = Experiment { slot: Slot::Grace, ..experiment("g", &[5_000, 5_000]) };
    assert_eq!(one.create(other_slot).unwrap().list.len(), 2);
    assert_eq!(two.check(), Ok(()));
    let mut wrong = two;
    wrong.list[0].status = ExperimentStatus::Running;
    assert!(matches!(wrong.check(), Err(CreateError::Busy { .. })));
}

#[test]
fn drops_the_oldest_experiment_that_is_over() {
    let mut all = Experiments::default();
    for number in 0..EXPERIMENTS_MAX {
        let name = format!("e{number}");
        all = all.create(experiment(&name, &[5_000, 5_000])).unwrap();
        all = if number == 3 { all.abort(&name, "", 9).unwrap() } else { all.pause(&name).unwrap() };
    }
    let more = all.create(experiment("more", &[5_000, 5_000])).unwrap();
    assert_eq!((more.list.len(), more.get("e3"), more.get("e0").is_some()), (EXPERIMENTS_MAX, None, true));
    let paused = more.pause("more").unwrap();
    assert_eq!(paused.create(experiment("last", &[5_000, 5_000])), Err(CreateError::TooMany));
}

#[test]
fn keeps_the_last_promoted_experiment_of_a_slot() {
    let mut all = Experiments::default();
    for number in 0..EXPERIMENTS_MAX {
        let name = format!("e{number}");
        all = all.create(experiment(&name, &[5_000, 5_000])).unwrap();
        all = if number < 2 { all.promote(&name, None, 9).unwrap() } else { all.pause(&name).unwrap() };
    }
    assert_eq!(all.promotion(Slot::Settle).map(|one| &*one.name), Some("e1"));
    assert_eq!(all.promotion(Slot::Grace), None);
    let more = all.create(experiment("more", &[5_000, 5_000])).unwrap();
    assert_eq!((more.get("e0"), more.get("e1").is_some()), (None, true));
    assert_eq!(more.pause("more").unwrap().create(experiment("last", &[5_000, 5_000])), Err(CreateError::TooMany));
}

#[test]
fn a_promotion_that_came_to_nothing_is_taken_back() {
    let promoted = one().promote("e", None, 9).unwrap();
    let back = promoted.unpromote("e", promoted.version, &ExperimentStatus::Running).unwrap();
    assert_eq!((&back.list[0].status, back.list[0].ended_ms, back.version), (&ExperimentStatus::Running, None, 3));
    assert_eq!(back.list[0].version, 3);
    let other = promoted.create(experiment("f", &[5_000, 5_000])).unwrap();
    assert_eq!(
        other.unpromote("e", promoted.version, &ExperimentStatus::Running).unwrap().list[0].status,
        ExperimentStatus::Paused
    );
    let not = |is| Err(ChangeError::Not { name: "e".into(), is });
    assert_eq!(promoted.unpromote("e", 1, &ExperimentStatus::Running), not("promoted"));
    assert_eq!(one().unpromote("e", 1, &ExperimentStatus::Running), not("running"));
}

#[test]
fn pauses_resumes_and_ends_an_experiment_once() {
    let one = one();
    let paused = one.pause("e").unwrap();
    assert_eq!((&paused.list[0].status, paused.version), (&ExperimentStatus::Paused, 2));
    assert!(matches!(paused.pause("e"), Err(ChangeError::Not { .. })));
    assert!(matches!(one.resume("e"), Err(ChangeError::Not { .. })));
    assert_eq!(paused.resume("e").unwrap().list[0].status, ExperimentStatus::Running);
    let promoted = one.promote("e", None, 9).unwrap();
    assert_eq!(promoted.list[0].status, ExperimentStatus::Promoted { arm: "treatment".into() });
    assert_eq!((one.list[0].ended_ms, promoted.list[0].ended_ms), (None, Some(9)));
    assert!(matches!(promoted.abort("e", "late", 9), Err(ChangeError::Over { is: "promoted", .. })));
    let aborted = one.abort("e", &"ü".repeat(400), 9).unwrap();
    let ExperimentStatus::Aborted { reason, guardrail } = &aborted.list[0].status else { unreachable!() };
    assert_eq!((reason.len(), guardrail, &aborted.list[0].weights), (512, &None, &vec![10_000, 0]));
    assert_eq!(one.pause("x"), Err(ChangeError::Unknown("x".into())));
}

#[test]
fn weights_move_only_the_last_treatment() {
    let two = Experiments::default().create(experiment("e", &[8_000, 1_000, 1_000])).unwrap();
    assert_eq!(two.set_weights("e", &[7_000, 1_000, 2_000]).unwrap().list[0].weights, [7_000, 1_000, 2_000]);
    assert_eq!(two.set_weights("e", &[7_000, 2_000, 1_000]), Err(WeightsError::Moves.into()));
    assert!(two.set_weights("e", &[10_000, 0, 0]).is_ok());
    assert_eq!(two.set_weights("e", &[10_000, 0]), Err(WeightsError::Sum { arms: 3 }.into()));
    assert_eq!(one().set_weights("e", &[8_000, 2_000]).unwrap().list[0].weights, [8_000, 2_000]);
    assert_eq!(two.promote("e", None, 9), Err(ChangeError::Arm("treatment, second".into())));
    assert_eq!(two.promote("e", Some("control"), 9), Err(ChangeError::Arm("treatment, second".into())));
}

#[test]
fn a_guardrail_speaks_when_it_has_seen_enough_and_ends_the_experiment() {
    let guardrails = Guardrails::default();
    let tally = Tally { units: 19, stranded_ms: 19 * 6_000, ..Tally::default() };
    assert_eq!(guardrails.crossed(&tally), None);
    let tally = Tally { units: 20, stranded_ms: 20 * 5_000, decisions: 49, failures: 49, ..Tally::default() };
    assert_eq!(guardrails.crossed(&tally), None, "at the limit is not over it");
    let crossed = guardrails.crossed(&Tally { decisions: 50, ..tally }).unwrap();
    assert_eq!((crossed.guardrail, crossed.of), (Guardrail::Failures, 50));
    let offline = Tally { units: 20, offline_ms: 20 * 60_001, ..Tally::default() };
    assert_eq!(guardrails.crossed(&offline).unwrap().guardrail, Guardrail::Offline);
    let none = Guardrails { offline_ms_mean_max: None, ..guardrails };
    assert_eq!(none.crossed(&offline), None);
    let ended = one().guardrail("e", "treatment", &crossed, 9).unwrap();
    let ExperimentStatus::Aborted { reason, guardrail } = &ended.list[0].status else { unreachable!() };
    assert_eq!(reason, "guardrail: treatment: 0.9800 of 50 decisions failed, more than 0.0200");
    assert_eq!((*guardrail, &ended.list[0].weights), (Some(Guardrail::Failures), &vec![10_000, 0]));
}

#[test]
fn a_device_stays_in_its_arm_while_its_horizon_lasts() {
    let few = experiment("e", &[9_500, 500]);
    let many = experiment("e", &[0, 10_000]);
    let key = keys().find(|key| few.arm_of(key) == 0).unwrap();
    let exposure = few.exposure(0, false).unwrap();
    let trial = Trial::new(&exposure, &ExposedDevice::default(), 1_000);
    assert_eq!(many.arm_for(&key, None, None, 1_000), Some(1));
    assert_eq!(many.arm_for(&key, None, Some(&exposure), 1_000), Some(1), "its arm has the weight 0");
    let half = experiment("e", &[1, 9_999]);
    assert_eq!(half.arm_of(&key), 1);
    assert_eq!(half.arm_for(&key, None, Some(&exposure), 1_000), Some(0));
    assert_eq!(half.arm_for(&key, Some(&trial), None, 60_999), Some(0));
    assert_eq!(half.arm_for(&key, Some(&trial), None, 61_000), Some(1), "the horizon is over");
    let another = Experiment { salt: "other".to_owned(), ..half.clone() };
    assert_eq!(another.arm_for(&key, None, Some(&exposure), 1_000), Some(another.arm_of(&key)));
    let pinned = another.exposure(1, false);
    for pinned in [None, pinned.as_ref()] {
        assert_eq!(another.arm_for(&key, Some(&trial), pinned, 60_999), None, "it is still counted in the other one");
    }
    assert_eq!(another.arm_for(&key, Some(&trial), None, 61_000), Some(another.arm_of(&key)));
    for status in [ExperimentStatus::Paused, ExperimentStatus::Promoted { arm: "treatment".into() }] {
        assert_eq!(Experiment { status, ..half.clone() }.arm_for(&key, Some(&trial), None, 1_000), None);
    }
    assert_eq!(Experiment { shadow_only: true, ..half }.arm_for(&key, Some(&trial), None, 1_000), None);
}

#[test]
fn a_module_is_named_by_its_digest_or_a_word() {
    let digest = "0123456789abcdef".repeat(4);
    for text in ["current", "native", &digest] {
        assert_eq!(String::from(ArmModule::try_from(text.to_owned()).unwrap()), text);
    }
    for wrong in ["", "Current", &digest[1..], &digest.to_uppercase()] {
        assert!(ArmModule::try_from(wrong.to_owned()).is_err(), "{wrong}");
    }
}

#[test]
fn what_a_treatment_does_beyond_the_observations_crosses_a_guardrail_too() {
    let limits = Guardrails::default();
    let tally = |units, stranded_ms| Tally { units, stranded_ms, ..Tally::default() };
    let (well, badly) = (tally(1_000, 0), tally(20, 20 * 6_000));
    assert_eq!(limits.crossed_by_any(&well, &tally(20, 20 * 5_000)), None);
    for (observed, beyond) in [(well, badly), (badly, well)] {
        let crossed = limits.crossed_by_any(&observed, &beyond).unwrap();
        assert_eq!((crossed.guardrail, crossed.found, crossed.of), (Guardrail::Stranded, 6_000.0, 20));
    }
    let few = tally(10, 10 * 6_000);
    assert_eq!(limits.crossed_by_any(&few, &few).unwrap().of, 20, "each of them are too few to speak");
    assert_eq!(limits.crossed_by_any(&few, &tally(9, 9 * 6_000)), None);
}
