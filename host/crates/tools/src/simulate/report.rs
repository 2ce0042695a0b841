//! Reports the outcomes of a simulation, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use pointwork_policy::SlotName;
use serde::Serialize;

use super::outcome::OutcomeSpec;
use super::play::OutcomePair;
use super::rule::{LoadedRule, RuleInfo};
use super::statistics::{Conclusion, Difference, Distribution};

/// The report of a simulation; as JSON it has these fields.
#[derive(Debug, Serialize)]
pub(super) struct SimulationReport {
    /// The scenario, as the arguments name it.
    scenario: String,
    summary: String,
    slot: SlotName,
    /// The first seed.
    seeds_from: u64,
    /// The seed after the last.
    seeds_to: u64,
    policy: RuleReport,
    against: RuleReport,
    outcomes: Vec<OutcomeReport>,
}

#[derive(Debug, Serialize)]
struct RuleReport {
    #[serde(flatten)]
    info: RuleInfo,
    questions: u64,
    failures: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Serialize)]
struct OutcomeReport {
    outcome: &'static str,
    unit: &'static str,
    better: &'static str,
    policy: Option<Distribution>,
    against: Option<Distribution>,
    difference: Option<Difference>,
    verdict: Conclusion,
    #[serde(skip)]
    digits: usize,
}

impl SimulationReport {
    /// Compares the outcomes of the two rules.
    pub(super) fn new(
        (scenario, summary): (String, String),
        slot: SlotName,
        seeds: &Range<u64>,
        [policy, against]: [&LoadedRule; 2],
        outcomes: &[OutcomeSpec],
        pairs: &[OutcomePair],
    ) -> Self {
        let report = |rule: &LoadedRule| RuleReport {
            info: rule.info.clone(),
            questions: rule.questions(),
            failures: rule.failures(),
        };
        Self {
            scenario,
            summary,
            slot,
            seeds_from: seeds.start,
            seeds_to: seeds.end,
            policy: report(policy),
            against: report(against),
            outcomes: outcomes.iter().enumerate().map(|(at, outcome)| compare(outcome, at, pairs)).collect(),
        }
    }

    /// The report as a table for people.
    pub(super) fn to_text(&self) -> String {
        let Self { scenario, summary, slot, seeds_from, seeds_to, policy, against, outcomes } = self;
        let count = seeds_to - seeds_from;
        let mut text =
            format!("{scenario}: {summary}\n{slot} in {count} worlds with either, seeds {seeds_from}..{seeds_to}\n");
        for (role, rule) in [("policy", policy), ("against", against)] {
            let RuleReport { info, questions, failures } = rule;
            let version = info.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
            let digest = info.digest.map_or(String::new(), |digest| format!(", {digest}"));
            // Writing to a String cannot fail.
            let _ = write!(text, "  {role:<8} {}{version}{digest}, asked {questions} times", info.name);
            for (kind, count) in failures {
                let _ = write!(text, ", failed {count} times by {kind}");
            }
            text.push('\n');
        }
        let _ = writeln!(
            text,
            "\n{:<15} {:<8} {:>9} {:>9} {:>9} {:>9} {:>9}   difference of the means, 95 %",
            "", "", "mean", "p50", "p90", "p99", "max"
        );
        for outcome in outcomes {
            outcome.write(&mut text);
        }
        text
    }
}

impl OutcomeReport {
    fn write(&self, text: &mut String) {
        let digits = self.digits;
        let difference = match &self.difference {
            None => "in no world with both".to_owned(),
            Some(Difference { mean, low, high, .. }) => {
                format!("{mean:+.digits$} [{low:+.digits$}, {high:+.digits$}] {}", self.verdict.as_str())
            }
        };
        let rows = [
            (self.outcome, "policy", &self.policy, difference),
            ("", "against", &self.against, format!("({})", self.unit)),
        ];
        for (name, role, distribution, last) in rows {
            let _ = write!(text, "{name:<15} {role:<8}");
            match distribution {
                Some(Distribution { mean, p50, p90, p99, max }) => {
                    for value in [mean, p50, p90, p99, max] {
                        let _ = write!(text, " {value:>9.digits$}");
                    }
                }
                None => text.push_str(&format!(" {:>9}", "-").repeat(5)),
            }
            let _ = writeln!(text, "   {last}");
        }
    }
}

fn compare(outcome: &OutcomeSpec, at: usize, pairs: &[OutcomePair]) -> OutcomeReport {
    let differences: Vec<f64> = pairs.iter().filter_map(|[policy, against]| Some(policy[at]? - against[at]?)).collect();
    let difference = Difference::of(&differences);
    OutcomeReport {
        outcome: outcome.name,
        unit: outcome.unit,
        better: if outcome.is_less_better { "less" } else { "more" },
        policy: Distribution::of(pairs.iter().filter_map(|[policy, _]| policy[at])),
        against: Distribution::of(pairs.iter().filter_map(|[_, against]| against[at])),
        difference,
        verdict: difference.map_or(Conclusion::TooFew, |difference| difference.conclusion(outcome.is_less_better)),
        digits: outcome.digits,
    }
}
