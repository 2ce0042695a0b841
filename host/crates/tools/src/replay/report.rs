//! What a replay found, for people and for machines.

use std::{collections::BTreeMap, fmt};

use pointwork_policy::{Digest, SlotName};
use serde::Serialize;

use super::Costs;

/// What came of a replay; as JSON it has these fields, `cost` as `{p50_us, p99_us}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replayed {
    /// Name and version of the policy.
    pub policy: String,
    /// Digest of its generation: module, configuration and contract.
    pub digest: Digest,
    /// The slot that it is for.
    pub slot: SlotName,
    /// Records in the file.
    pub read: u64,
    /// Those of the slot: all that were evaluated.
    pub of_slot: u64,
    /// Those that were answered in the same way.
    pub agreed: u64,
    /// Those that this very generation had answered.
    pub of_this_generation: u64,
    /// Those of them that it answered in the same way again: all, unless it ran over a deadline.
    pub agreed_of_this_generation: u64,
    /// Each kind of disagreement.
    pub cells: Vec<Cell>,
    /// What the evaluations took.
    pub cost: Costs,
    /// Those without a verdict, by kind.
    pub failures: BTreeMap<&'static str, u64>,
}

/// Decisions that were recorded as one thing and come out as another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// The recorded verdict's kind, `native: ` before it when no policy was asked, or `failed: ` and a failure's.
    pub recorded: String,
    /// The same of this policy's; with `, other span` or `, another one` when only that differs.
    pub here: String,
    /// How many.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<Example>,
}

/// One decision of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Example {
    /// Its line in the file, from 1.
    pub line: u64,
    /// Its id.
    pub id: String,
    /// The verdict that was recorded, or the kind of failure.
    pub recorded: String,
    /// The policy's verdict, or the kind of failure.
    pub here: String,
    /// What was asked; a long question is cut.
    pub question: String,
}

impl Replayed {
    pub(super) fn empty(digest: Digest, slot: SlotName) -> Self {
        Self {
            policy: String::new(),
            digest,
            slot,
            read: 0,
            of_slot: 0,
            agreed: 0,
            of_this_generation: 0,
            agreed_of_this_generation: 0,
            cells: Vec::new(),
            cost: Costs::default(),
            failures: BTreeMap::new(),
        }
    }
}

impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} for slot {}, generation {}", self.policy, self.slot, self.digest.short())?;
        writeln!(f, "records     {} read, {} of slot {}", self.read, self.of_slot, self.slot)?;
        write_share(f, "agreement", self.agreed, self.of_slot)?;
        if self.of_this_generation > 0 {
            write_share(f, "  its own", self.agreed_of_this_generation, self.of_this_generation)?;
        }
        match self.cost.shown() {
            Some(cost) => writeln!(f, "cost        p50 {:.2} us, p99 {:.2} us", cost.p50_us, cost.p99_us)?,
            None => writeln!(f, "cost        -")?,
        }
        let failures: Vec<_> = self.failures.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        writeln!(f, "failures    {}", if failures.is_empty() { "none".to_owned() } else { failures.join(", ") })?;
        if self.cells.is_empty() {
            return Ok(());
        }
        let width =
            |text: fn(&Cell) -> &String| self.cells.iter().map(|cell| text(cell).len()).max().unwrap_or(0).max(8);
        let (recorded, here) = (width(|cell| &cell.recorded), width(|cell| &cell.here));
        writeln!(f, "\n{:recorded$}    {:here$}  {:>8}", "recorded", "here", "count")?;
        for cell in &self.cells {
            writeln!(f, "{:recorded$} -> {:here$}  {:>8}", cell.recorded, cell.here, cell.count)?;
        }
        for cell in self.cells.iter().filter(|cell| !cell.examples.is_empty()) {
            writeln!(f, "\n{} -> {}", cell.recorded, cell.here)?;
            for example in &cell.examples {
                let Example { line, id, recorded, here, question } = example;
                writeln!(f, "  line {line} ({id}): {recorded} -> {here} to {question}")?;
            }
        }
        Ok(())
    }
}

/// Never rounded up to all, or down to none.
fn write_share(f: &mut fmt::Formatter<'_>, what: &str, count: u64, of: u64) -> fmt::Result {
    if of == 0 {
        return writeln!(f, "{what:11} no record to compare");
    }
    let exact = count as f64 * 100.0 / of as f64;
    let hundredths = (exact * 100.0).floor() / 100.0;
    let percent = if count > 0 { hundredths.max(0.01) } else { 0.0 };
    writeln!(f, "{what:11} {percent:.2} %: {count} of {of}")
}
