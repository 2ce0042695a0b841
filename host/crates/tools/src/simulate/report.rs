//! What a simulation says, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use pointwork_policy::SlotName;
use serde::Serialize;

use super::compare::{Difference, Distribution, Word};
use super::outcome::Outcome;
use super::play::Pair;
use super::side::{Info, Side};

/// A simulation's report; as JSON with these names.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The scenario, as it was named.
    scenario: String,
    summary: String,
    slot: SlotName,
    /// The first seed.
    seeds_from: u64,
    /// The seed after the last.
    seeds_to: u64,
    policy: Player,
    against: Player,
    outcomes: Vec<Compared>,
}

#[derive(Debug, Serialize)]
struct Player {
    #[serde(flatten)]
    info: Info,
    questions: u64,
    failures: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Serialize)]
struct Compared {
    outcome: &'static str,
    unit: &'static str,
    better: &'static str,
    policy: Option<Distribution>,
    against: Option<Distribution>,
    difference: Option<Difference>,
    verdict: Word,
    #[serde(skip)]
    digits: usize,
}

impl Report {
    /// Compares what was played.
    pub(super) fn new(
        (scenario, summary): (String, String),
        slot: SlotName,
        seeds: &Range<u64>,
        [policy, against]: [&Side; 2],
        outcomes: &[Outcome],
        pairs: &[Pair],
    ) -> Report {
        let player =
            |side: &Side| Player { info: side.info.clone(), questions: side.questions(), failures: side.failures() };
        let compared = outcomes.iter().enumerate().map(|(at, outcome)| compare(outcome, at, pairs));
        Report {
            scenario,
            summary,
            slot,
            seeds_from: seeds.start,
            seeds_to: seeds.end,
            policy: player(policy),
            against: player(against),
            outcomes: compared.collect(),
        }
    }

    /// For programs, on one line.
    ///
    /// # Errors
    /// Never of its own: as serde_json does.
    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self).map(|json| json + "\n")
    }

    /// For people: a table.
    pub(super) fn to_text(&self) -> String {
        let Report { scenario, summary, slot, seeds_from, seeds_to, policy, against, outcomes } = self;
        let count = seeds_to - seeds_from;
        let mut text =
            format!("{scenario}: {summary}\n{slot} in {count} worlds with either, seeds {seeds_from}..{seeds_to}\n");
        for (role, player) in [("policy", policy), ("against", against)] {
            let Player { info, questions, failures } = player;
            let version = info.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
            let digest = info.digest.map_or(String::new(), |digest| format!(", {digest}"));
            // A String takes whatever is written.
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
        for one in outcomes {
            one.write(&mut text);
        }
        text
    }
}

impl Compared {
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

fn compare(outcome: &Outcome, at: usize, pairs: &[Pair]) -> Compared {
    let differences: Vec<f64> = pairs.iter().filter_map(|pair| Some(pair.policy[at]? - pair.against[at]?)).collect();
    let difference = Difference::of(&differences);
    Compared {
        outcome: outcome.name,
        unit: outcome.unit,
        better: if outcome.is_less_better { "less" } else { "more" },
        policy: Distribution::of(pairs.iter().filter_map(|pair| pair.policy[at])),
        against: Distribution::of(pairs.iter().filter_map(|pair| pair.against[at])),
        difference,
        verdict: difference.map_or(Word::TooFew, |difference| difference.word(outcome.is_less_better)),
        digits: outcome.digits,
    }
}
