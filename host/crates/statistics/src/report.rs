//! Reports what an experiment has measured, so that an operator can decide whether to promote the treatment.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::outcome::{Direction, MeasuredOutcome};
use super::sample_ratio::{SampleRatio, Split, sample_ratio};
use super::sequence::{self, Interval, Mean, Observation, Sequence};
use super::study::{Disagreement, GuardrailReading, Study};
use super::unit::Unit;

/// What an experiment has measured so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentReport {
    /// The experiment's name.
    pub name: String,
    /// The slot whose decisions it is about.
    pub slot: String,
    /// When the report was made, milliseconds since 1970.
    pub now_ms: u64,
    /// How long a unit is measured after its exposure; it is counted once that is over.
    pub horizon_ms: u64,
    /// The arms' names; the first is control. All lists by arm are in this order.
    pub arms: Vec<String>,
    /// Whether all exposed units are split as the weights say. If not, no outcome is reported.
    pub sample_ratio: SampleRatio,
    /// Units whose horizon is over and that are in the outcomes, by arm.
    pub counted: Vec<usize>,
    /// The units that are in no outcome, and why.
    pub left_out: LeftOut,
    /// How likely the interval of one effect is to be wrong at any look: [`sequence::ALPHA`] divided by the number of treatments.
    pub alpha: f64,
    /// The outcomes, in the study's order.
    pub outcomes: Vec<OutcomeReport>,
    /// The state of the guardrails.
    pub guardrails: Vec<GuardrailReading>,
    /// How often the shadow arms disagreed.
    pub shadow: Vec<Disagreement>,
}

/// The units that are in no outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Their horizon is not over.
    pub under_way: usize,
    /// Their record does not fit the experiment ([`Unit::fits`]); they are not in the sample ratio either.
    pub unfit: usize,
    /// There is another record of the same unit, with an earlier exposure. They are not in the sample ratio either.
    pub repeated: usize,
}

/// One outcome of the arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeReport {
    /// What was measured.
    #[serde(flatten)]
    pub outcome: MeasuredOutcome,
    /// The plain mean of each arm. If weights changed on the way, the effect is not the difference of two of them: it compares only
    /// units that were exposed under the same weights.
    pub means: Vec<ArmMean>,
    /// The effect of each treatment, compared with control.
    pub effects: Vec<Effect>,
}

/// The plain mean of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmMean {
    /// The units that have such a number.
    pub units: usize,
    /// Their mean. `None` without units.
    pub mean: Option<f64>,
}

/// The effect of a treatment on one outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The treatment's name.
    pub arm: String,
    /// The units of control and of the treatment that were compared: exposed while both arms had weight.
    pub units: [usize; 2],
    /// Treatment minus control, in the outcome's unit of measure. `None`, like its interval, while it is too early.
    pub estimate: Option<f64>,
    /// The interval's lower end; it holds at every look. `None` too if all units had the same number: how much it varies is not known.
    pub low: Option<f64>,
    /// The interval's upper end.
    pub high: Option<f64>,
    /// What follows.
    pub verdict: EffectVerdict,
}

/// What follows from the interval of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectVerdict {
    /// The interval is on the outcome's better side of no effect.
    Better,
    /// The interval is on the outcome's worse side of no effect.
    Worse,
    /// The interval excludes no effect, in an outcome of which neither side is better.
    Different,
    /// The interval includes no effect.
    Undecided,
    /// Fewer than [`sequence::SMALLER_ARM_MIN`] units in the smaller arm.
    TooEarly,
}

impl EffectVerdict {
    fn of(better: Direction, interval: Option<Interval>) -> Self {
        match (interval, better) {
            (None, _) => Self::TooEarly,
            (Some(interval), _) if !interval.excludes_none() => Self::Undecided,
            (Some(_), Direction::Neither) => Self::Different,
            (Some(interval), _) if (interval.estimate < 0.0) == (better == Direction::Lower) => Self::Better,
            (Some(_), _) => Self::Worse,
        }
    }
}

/// Makes the report of an experiment as it stands. The same units give the same report, in whatever order they come.
///
/// A unit is counted once its horizon is over, with what was measured over the whole horizon. So a later report never changes what
/// an earlier one has counted.
pub fn report(study: &Study<'_>) -> ExperimentReport {
    let mut left_out = LeftOut::default();
    let exposed = in_order(study, &mut left_out);
    let sample_ratio = sample_ratio(study.arms.len(), exposed.iter().copied());
    let counted: Vec<&Unit> =
        exposed.iter().copied().filter(|unit| unit.is_over(study.horizon_ms, study.now_ms)).collect();
    left_out.under_way = exposed.len() - counted.len();
    let alpha = sequence::ALPHA / sequence::count(study.arms.len().saturating_sub(1).max(1));
    let outcomes = match sample_ratio.verdict {
        Split::Broken => Vec::new(),
        Split::Fair | Split::TooEarly => {
            let outcomes = study.outcomes.iter().enumerate();
            outcomes.map(|(index, outcome)| compare(study.arms, outcome, index, &counted, alpha)).collect()
        }
    };
    ExperimentReport {
        name: study.name.to_owned(),
        slot: study.slot.to_owned(),
        now_ms: study.now_ms,
        horizon_ms: study.horizon_ms,
        arms: study.arms.to_vec(),
        counted: (0..study.arms.len()).map(|arm| counted.iter().filter(|unit| unit.arm == arm).count()).collect(),
        sample_ratio,
        left_out,
        alpha,
        outcomes,
        guardrails: study.guardrails.to_vec(),
        shadow: study.shadow.to_vec(),
    }
}

/// The units that fit, each once, in the order of their exposure and then of their ids.
fn in_order<'a>(study: &Study<'a>, left_out: &mut LeftOut) -> Vec<&'a Unit> {
    let fits = |unit: &&Unit| unit.fits(study.arms.len(), study.outcomes.len());
    let mut units: Vec<&Unit> = study.units.iter().filter(fits).collect();
    left_out.unfit = study.units.len() - units.len();
    units.sort_by(|one, other| (one.exposed_ms, &one.id).cmp(&(other.exposed_ms, &other.id)));
    let mut seen = BTreeSet::new();
    let fitting = units.len();
    units.retain(|unit| seen.insert(unit.id.as_str()));
    left_out.repeated = fitting - units.len();
    units
}

/// One outcome of all arms, over units in order.
fn compare(arms: &[String], outcome: &MeasuredOutcome, index: usize, units: &[&Unit], alpha: f64) -> OutcomeReport {
    let mut means = vec![Mean::default(); arms.len()];
    let mut sequences = vec![Sequence::default(); arms.len()];
    for unit in units {
        let Some(value) = unit.values[index] else { continue };
        means[unit.arm].add(value);
        // A unit of control is compared with every treatment, one of a treatment with control.
        for (treatment, sequence) in sequences.iter_mut().enumerate().skip(1) {
            if (unit.arm == 0 || unit.arm == treatment)
                && let Some(probability) = unit.probability(treatment)
            {
                sequence.add(Observation { treated: unit.arm != 0, probability, value });
            }
        }
    }
    let effects = arms.iter().zip(&sequences).skip(1);
    OutcomeReport {
        outcome: outcome.clone(),
        means: means.iter().map(ArmMean::from).collect(),
        effects: effects.map(|(arm, sequence)| effect(arm, outcome.better, sequence, alpha)).collect(),
    }
}

fn effect(arm: &str, better: Direction, sequence: &Sequence, alpha: f64) -> Effect {
    let interval = sequence.interval(alpha);
    let known = interval.filter(|interval| interval.low < interval.high);
    Effect {
        arm: arm.to_owned(),
        units: sequence.units(),
        estimate: interval.map(|interval| interval.estimate),
        low: known.map(|interval| interval.low),
        high: known.map(|interval| interval.high),
        verdict: EffectVerdict::of(better, interval),
    }
}

impl From<&Mean> for ArmMean {
    fn from(mean: &Mean) -> Self {
        Self { units: mean.units, mean: (mean.units > 0).then_some(mean.mean) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
