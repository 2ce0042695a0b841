//! The sequence against known answers, and its error rates in simulated experiments.

use super::*;

/// Independently computed by a direct transcription of the formula in Python: all `x` in a list, `c` summed anew for each.
fn patterned(units: usize) -> Sequence {
    let mut sequence = Sequence::default();
    for i in 0..units {
        let treated = i % 4 == 0;
        let value = count((i * i) % 7) + if !treated && i % 11 == 0 { 3.0 } else { 0.0 };
        sequence.add(Observation { treated, probability: if i < 200 { 0.25 } else { 0.4 }, value });
    }
    sequence
}

fn close(interval: Interval, expected: [f64; 3]) {
    for (is, expected) in [interval.estimate, interval.low, interval.high].into_iter().zip(expected) {
        assert!((is - expected).abs() < 1e-12, "{interval:?}, not {expected}");
    }
}

#[test]
fn the_interval_is_the_formulas() {
    let sequence = patterned(400);
    assert_eq!(sequence.units(), [300, 100]);
    let expected = [-0.249_312_697_626_191_54, -0.842_794_811_445_113_3, 0.344_169_416_192_730_1];
    close(sequence.interval(0.05).unwrap(), expected);
    let expected = [-0.249_312_697_626_191_54, -0.882_578_215_729_837_2, 0.383_952_820_477_454_05];
    close(sequence.interval(0.025).unwrap(), expected);
}

/// The treatment's values are six times those of control: its `x` deviate more than if the arms were alike.
#[test]
fn a_treatment_that_varies_more_widens_the_interval() {
    let mut sequence = Sequence::default();
    for i in 0..400_usize {
        let treated = i % 4 == 0;
        let value = count((i * i) % 7) * if treated { 6.0 } else { 1.0 };
        sequence.add(Observation { treated, probability: 0.25, value });
    }
    assert!(sequence.squares > sequence.squares_if_alike);
    let expected = [9.991_088_725_570_703, 6.510_106_339_685_079, 13.472_071_111_456_328];
    close(sequence.interval(0.05).unwrap(), expected);
}

#[test]
fn nothing_is_said_before_the_smaller_arm_has_its_minimum() {
    assert_eq!(patterned(236).units(), [177, 59]);
    assert_eq!(patterned(236).interval(ALPHA), None);
    assert_eq!(patterned(237).units(), [177, 60]);
    assert!(patterned(237).interval(ALPHA).is_some());
}

#[test]
fn an_outcome_that_never_varies_has_no_effect() {
    let mut sequence = Sequence::default();
    for i in 0..400 {
        sequence.add(Observation { treated: i % 2 == 0, probability: 0.5, value: 600_000.0 });
    }
    let interval = sequence.interval(ALPHA).unwrap();
    assert_eq!(interval, Interval { estimate: 0.0, low: 0.0, high: 0.0 });
    assert!(!interval.excludes_none());
}

#[test]
fn where_the_outcomes_zero_is_makes_no_difference() {
    let (mut counted, mut shifted) = (Sequence::default(), Sequence::default());
    for i in 0..400_usize {
        let observation = Observation { treated: i % 3 == 0, probability: 0.3, value: count((i * i) % 7) };
        counted.add(observation);
        shifted.add(Observation { value: observation.value + 1_000.0, ..observation });
    }
    let (counted, shifted) = (counted.interval(ALPHA).unwrap(), shifted.interval(ALPHA).unwrap());
    assert!((counted.low - shifted.low).abs() < 1e-9 && (counted.high - shifted.high).abs() < 1e-9);
}

/// Counts with a mean and a dispersion: the smaller the dispersion, the more of them are 0 and the higher the others.
struct NegativeBinomial {
    cumulative: Vec<f64>,
}

impl NegativeBinomial {
    fn new(mean: f64, dispersion: f64) -> Self {
        let q = mean / (mean + dispersion);
        let mut probability = (1.0 - q).powf(dispersion);
        let mut cumulative = vec![probability];
        while cumulative[cumulative.len() - 1] < 1.0 - 1e-9 {
            let k = count(cumulative.len() - 1);
            probability *= q * (k + dispersion) / (k + 1.0);
            cumulative.push(cumulative[cumulative.len() - 1] + probability);
        }
        Self { cumulative }
    }

    fn draw(&self, random: &mut fastrand::Rng) -> f64 {
        let u = random.f64();
        count(self.cumulative.partition_point(|below| *below < u))
    }
}

/// One experiment, looked at 100 times: at how many units and on which side its interval first excludes 0.
fn first_call(
    random: &mut fastrand::Rng,
    [control, treatment]: [&NegativeBinomial; 2],
    probability: f64,
    units: usize,
) -> Option<(usize, f64)> {
    let mut sequence = Sequence::default();
    for counted in 1..=units {
        let treated = random.f64() < probability;
        let value = if treated { treatment } else { control }.draw(random);
        sequence.add(Observation { treated, probability, value });
        let look = counted % (units / 100) == 0;
        if let Some(interval) = sequence.interval(ALPHA).filter(|interval| look && interval.excludes_none()) {
            return Some((counted, interval.estimate));
        }
    }
    None
}

/// How many of 2,000 experiments without any difference are ever called different.
fn called_different(mean: f64, dispersion: f64, probability: f64) -> usize {
    let mut random = fastrand::Rng::with_seed(1);
    let counts = NegativeBinomial::new(mean, dispersion);
    assert!(counts.cumulative[0] > 0.65, "most units are 0");
    (0..2_000).filter(|_| first_call(&mut random, [&counts, &counts], probability, 4_000).is_some()).count()
}

/// 5 % of 2,000 are 100.
#[test]
fn arms_that_are_alike_are_seldom_called_different() {
    for (mean, dispersion) in [(0.5, 0.25), (1.0, 0.05)] {
        for probability in [0.5, 0.05] {
            let wrong = called_different(mean, dispersion, probability);
            assert!(wrong <= 100, "mean {mean}, dispersion {dispersion}, {probability}: {wrong}");
        }
    }
}

/// The treatment has 60 % less. The looks are every 20 units at 50/50 and every 100 at 5/95; half are found at 480 and 3,100.
#[test]
fn a_treatment_that_helps_is_found() {
    let mut random = fastrand::Rng::with_seed(2);
    let arms = [&NegativeBinomial::new(0.5, 0.25), &NegativeBinomial::new(0.2, 0.25)];
    for (probability, units, found_at) in [(0.5, 2_000, 600), (0.05, 10_000, 4_000)] {
        let mut calls: Vec<(usize, f64)> =
            (0..200).filter_map(|_| first_call(&mut random, arms, probability, units)).collect();
        assert!(calls.len() >= 195, "{probability}: {} of 200 found", calls.len());
        assert!(calls.iter().all(|call| call.1 < 0.0), "none is called worse");
        calls.sort_unstable_by_key(|call| call.0);
        let median = calls[calls.len() / 2].0;
        assert!(median <= found_at, "{probability}: half are found at {median} units");
    }
}
