//! Reports what a replay found, as text and as JSON.

use std::{collections::BTreeMap, fmt};

use pointwork_policy::{Digest, SlotName};
use serde::Serialize;

use crate::decision_costs::DecisionCosts;

/// The result of a replay; as JSON it has these fields, `cost` as `{p50_us, p99_us}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayReport {
    /// Name and version of the policy.
    pub policy: String,
    /// Digest of its generation: module, configuration and contract.
    pub digest: Digest,
    /// The slot that it is for.
    pub slot: SlotName,
    /// Records in the file.
    pub read: u64,
    /// Records of the slot: the policy was asked all of them.
    pub of_slot: u64,
    /// Records that the policy answered in the same way.
    pub agreed: u64,
    /// Records that this very generation had answered.
    pub of_this_generation: u64,
    /// Those of them that it answered in the same way again: all, unless it exceeded a deadline.
    pub agreed_of_this_generation: u64,
    /// Each kind of disagreement.
    pub cells: Vec<MatrixCell>,
    /// How long the decisions took.
    pub cost: DecisionCosts,
    /// Questions without a verdict, by kind of failure.
    pub failures: BTreeMap<&'static str, u64>,
}

/// Decisions that were recorded with one result and have another one here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MatrixCell {
    /// The kind of the recorded verdict, after `native: ` when no policy was asked; or `failed: ` and the kind of the failure.
    pub recorded: String,
    /// The same of this policy's; with `, other span` or `, another one` when only that differs.
    pub here: String,
    /// How many decisions.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<DisagreementExample>,
}

/// One decision of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DisagreementExample {
    /// Its line in the file, from 1.
    pub line: u64,
    /// Its id.
    pub id: String,
    /// The verdict that was recorded, or the kind of failure.
    pub recorded: String,
    /// The policy's verdict, or the kind of failure.
    pub here: String,
    /// The question; a long one is cut.
    pub question: String,
}

impl ReplayReport {
    /// The report of a replay that has read nothing yet.
    pub(super) fn new(policy: String, digest: Digest, slot: SlotName) -> Self {
        Self {
            policy,
            digest,
            slot,
            read: 0,
            of_slot: 0,
            agreed: 0,
            of_this_generation: 0,
            agreed_of_this_generation: 0,
            cells: Vec::new(),
            cost: DecisionCosts::default(),
            failures: BTreeMap::new(),
        }
    }
}

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} for slot {}, generation {}", self.policy, self.slot, self.digest.short())?;
        writeln!(f, "records     {} read, {} of slot {}", self.read, self.of_slot, self.slot)?;
        write_share(f, "agreement", self.agreed, self.of_slot)?;
        if self.of_this_generation > 0 {
            write_share(f, "  its own", self.agreed_of_this_generation, self.of_this_generation)?;
        }
        match self.cost.quantiles() {
            Some(cost) => writeln!(f, "cost        {cost}")?,
            None => writeln!(f, "cost        -")?,
        }
        let failures: Vec<_> = self.failures.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        writeln!(f, "failures    {}", if failures.is_empty() { "none".to_owned() } else { failures.join(", ") })?;
        if self.cells.is_empty() {
            return Ok(());
        }
        let width =
            |text: fn(&MatrixCell) -> &String| self.cells.iter().map(|cell| text(cell).len()).max().unwrap_or(0).max(8);
        let (recorded, here) = (width(|cell| &cell.recorded), width(|cell| &cell.here));
        writeln!(f, "\n{:recorded$}    {:here$}  {:>8}", "recorded", "here", "count")?;
        for cell in &self.cells {
            writeln!(f, "{:recorded$} -> {:here$}  {:>8}", cell.recorded, cell.here, cell.count)?;
        }
        for cell in self.cells.iter().filter(|cell| !cell.examples.is_empty()) {
            writeln!(f, "\n{} -> {}", cell.recorded, cell.here)?;
            for DisagreementExample { line, id, recorded, here, question } in &cell.examples {
                writeln!(f, "  line {line} ({id}): {recorded} -> {here} to {question}")?;
            }
        }
        Ok(())
    }
}

/// Writes a share in percent. It shows 100 % only for all, and 0 % only for none.
fn write_share(f: &mut fmt::Formatter<'_>, label: &str, count: u64, of: u64) -> fmt::Result {
    if of == 0 {
        return writeln!(f, "{label:11} no record to compare");
    }
    let exact = count as f64 * 100.0 / of as f64;
    let hundredths = (exact * 100.0).floor() / 100.0;
    let percent = if count > 0 { hundredths.max(0.01) } else { 0.0 };
    writeln!(f, "{label:11} {percent:.2} %: {count} of {of}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_rounds_a_share_to_all_or_none() {
        let report = |agreed, of_slot| {
            let report = ReplayReport::new(String::new(), Digest::of_wasm(b""), SlotName::Grace);
            ReplayReport { agreed, of_slot, ..report }.to_string()
        };
        assert!(report(3, 3).contains("agreement   100.00 %: 3 of 3\n"));
        assert!(report(999_999, 1_000_000).contains("agreement   99.99 %: 999999 of 1000000\n"));
        assert!(report(1, 1_000_000).contains("agreement   0.01 %: 1 of 1000000\n"));
        assert!(report(0, 3).contains("agreement   0.00 %: 0 of 3\n"));
        assert!(report(0, 0).contains("agreement   no record to compare\n"));
    }
}
