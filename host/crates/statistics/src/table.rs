//! Writes a report as plain text for operators.

use std::fmt::{self, Display, Formatter};

use super::outcome::OutcomeMeasure;
use super::report::{Effect, EffectVerdict, ExperimentReport, LeftOut, OutcomeReport};
use super::sample_ratio::Split;
use super::sequence::SMALLER_ARM_MIN;
use super::study::{Disagreement, GuardrailReading};

impl Display for ExperimentReport {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let horizon = span(ms(self.horizon_ms));
        writeln!(to, "{} (slot {}): each unit is counted once, {horizon} after its exposure", self.name, self.slot)?;
        writeln!(to)?;
        self.exposures().write(to)?;
        writeln!(to, "{}", self.split())?;
        left_out(to, self.left_out)?;
        if !self.outcomes.is_empty() {
            writeln!(to)?;
            self.effects().write(to)?;
            let percent = number(100.0 * (1.0 - self.alpha));
            writeln!(to, "effect: treatment minus control. Each interval holds at every look, with {percent} %.")?;
        }
        guardrails(to, &self.guardrails)?;
        disagreements(to, &self.shadow)
    }
}

impl ExperimentReport {
    fn exposures(&self) -> TextTable {
        let mut table = TextTable::new(&["arm", "exposed", "expected", "counted"]);
        for (index, arm) in self.arms.iter().enumerate() {
            let ratio = &self.sample_ratio;
            table.row([
                arm.clone(),
                ratio.exposed[index].to_string(),
                format!("{:.1}", ratio.expected[index]),
                self.counted[index].to_string(),
            ]);
        }
        table
    }

    fn split(&self) -> String {
        let ratio = &self.sample_ratio;
        match (ratio.verdict, ratio.chi_square, ratio.p) {
            (Split::Fair, Some(chi_square), Some(p)) => format!("split: fair (chi-square {chi_square:.2}, p = {p:.3})"),
            (Split::Broken, Some(chi_square), Some(p)) => {
                format!(
                    "split: assignment or logging is broken (chi-square {chi_square:.2}, p = {p:.1e}): no effect is reported"
                )
            }
            (Split::Broken, ..) => {
                "split: assignment or logging is broken (units in an arm without weight): no effect is reported"
                    .to_owned()
            }
            (Split::Fair | Split::TooEarly, ..) => "split: too few units to say".to_owned(),
        }
    }

    fn effects(&self) -> TextTable {
        let mut table = TextTable::new(&["outcome", "arm", "control", "arm's", "effect", "interval", "verdict"]);
        for outcome in &self.outcomes {
            for (effect, mean) in outcome.effects.iter().zip(outcome.means.iter().skip(1)) {
                let measure = outcome.outcome.measure;
                let shown = |mean: Option<f64>| mean.map_or_else(|| "-".to_owned(), |mean| amount(measure, mean));
                table.row([
                    outcome.outcome.name.to_string(),
                    effect.arm.clone(),
                    shown(outcome.means[0].mean),
                    shown(mean.mean),
                    signed(outcome, effect),
                    interval(measure, effect),
                    verdict(effect),
                ]);
            }
        }
        table
    }
}

/// The effect and, if control's mean is above 0, its share of that mean.
fn signed(outcome: &OutcomeReport, effect: &Effect) -> String {
    let Some(estimate) = effect.estimate else { return "-".to_owned() };
    let sign = if estimate > 0.0 { "+" } else { "" };
    let absolute = format!("{sign}{}", amount(outcome.outcome.measure, estimate));
    match outcome.means[0].mean {
        Some(control) if control > 0.0 => format!("{absolute} ({:+.0} %)", 100.0 * estimate / control),
        _ => absolute,
    }
}

fn interval(measure: OutcomeMeasure, effect: &Effect) -> String {
    match (effect.low, effect.high) {
        (Some(low), Some(high)) => format!("{} to {}", amount(measure, low), amount(measure, high)),
        _ => "-".to_owned(),
    }
}

fn verdict(effect: &Effect) -> String {
    let [control, treatment] = effect.units;
    match effect.verdict {
        EffectVerdict::Better => "better".to_owned(),
        EffectVerdict::Worse => "worse".to_owned(),
        EffectVerdict::Different => "different".to_owned(),
        EffectVerdict::Undecided => "undecided".to_owned(),
        EffectVerdict::TooEarly => format!("too early ({} of {SMALLER_ARM_MIN} units)", control.min(treatment)),
    }
}

fn left_out(to: &mut Formatter<'_>, left_out: LeftOut) -> fmt::Result {
    let LeftOut { under_way, unfit, repeated } = left_out;
    let all = [
        (under_way, "whose time is not over"),
        (unfit, "whose record does not fit the experiment"),
        (repeated, "that are a second record of the same unit"),
    ];
    for (units, why) in all.into_iter().filter(|(units, _)| *units > 0) {
        writeln!(to, "not counted: {units} {why}")?;
    }
    Ok(())
}

fn guardrails(to: &mut Formatter<'_>, guardrails: &[GuardrailReading]) -> fmt::Result {
    if guardrails.is_empty() {
        return Ok(());
    }
    writeln!(to)?;
    let mut table = TextTable::new(&["guardrail", "arm", "value", "limit", ""]);
    for guardrail in guardrails {
        let state = if guardrail.crossed_ms.is_some() { "CROSSED: the arm's weight is 0" } else { "holds" };
        table.row([
            guardrail.name.clone(),
            guardrail.arm.clone(),
            number(guardrail.value),
            number(guardrail.limit),
            state.to_owned(),
        ]);
    }
    table.write(to)
}

fn disagreements(to: &mut Formatter<'_>, shadow: &[Disagreement]) -> fmt::Result {
    if shadow.is_empty() {
        return Ok(());
    }
    writeln!(to)?;
    let mut table = TextTable::new(&["shadow arm", "the slot said", "the arm says", "decisions"]);
    for cell in shadow {
        table.row([cell.arm.clone(), cell.served.clone(), cell.shadow.clone(), cell.count.to_string()]);
    }
    table.write(to)
}

fn amount(measure: OutcomeMeasure, value: f64) -> String {
    match measure {
        OutcomeMeasure::Count => number(value),
        OutcomeMeasure::Milliseconds => span(value),
        OutcomeMeasure::Share => format!("{} %", number(100.0 * value)),
    }
}

/// Milliseconds, in seconds from a second on and in minutes from two minutes on.
fn span(ms: f64) -> String {
    match ms.abs() {
        long if long >= 120_000.0 => format!("{} min", number(ms / 60_000.0)),
        some if some >= 1_000.0 => format!("{} s", number(ms / 1_000.0)),
        _ => format!("{} ms", number(ms)),
    }
}

/// A number with three significant digits; whole numbers are exact.
fn number(value: f64) -> String {
    match value.abs() {
        // The sum with 0 is never -0.
        whole if whole.fract() == 0.0 => format!("{:.0}", value + 0.0),
        large if large >= 100.0 => format!("{value:.0}"),
        some if some >= 10.0 => format!("{value:.1}"),
        small if small >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// Exact below 2⁵³ milliseconds.
#[allow(clippy::cast_precision_loss)]
fn ms(value: u64) -> f64 {
    value as f64
}

/// A table whose columns are as wide as their longest cell, left-aligned, with two blanks between them.
struct TextTable(Vec<Vec<String>>);

impl TextTable {
    fn new(head: &[&str]) -> Self {
        Self(vec![head.iter().map(|title| (*title).to_owned()).collect()])
    }

    fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.0.push(cells.into());
    }

    fn write(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let columns = self.0.first().map_or(0, Vec::len);
        let width =
            |column: usize| self.0.iter().map(|row: &Vec<String>| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.0 {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            writeln!(to, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}
