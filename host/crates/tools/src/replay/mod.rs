//! `pointwork policy replay`: what a policy would have answered to the decisions of a recording.
//!
//! A question holds its time and its seed, so the same module with the same configuration gives the same answers. The file is read
//! as a stream, and only counts and the first examples of each disagreement are kept.

mod costs;
mod report;
mod told;

use std::{
    collections::BTreeMap,
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
};

use anyhow::Context;
use pointwork_policy::{
    Asker, Digest, FailureKind, Grace, Presence, Settle, SlotName, Target,
    record::{self, Decider, DecisionRecord},
};

use crate::policy_file::OfflinePolicy;

pub(crate) use self::told::{Told, one_line};
pub use self::{
    costs::{Costs, CostsShown},
    report::{Cell, Example, Replayed},
};

/// What is to be replayed.
#[derive(Debug, Clone)]
pub struct Replay {
    /// The policy's file.
    pub policy: PathBuf,
    /// Its configuration: a JSON object, or the file that holds one; without it, the JSON file beside the policy.
    pub config: Option<PathBuf>,
    /// The recording.
    pub records: PathBuf,
    /// What a decision may take, in milliseconds; without it, what a slot has by default.
    pub deadline_ms: Option<u64>,
    /// How many examples of each disagreement are kept.
    pub examples_max: usize,
}

/// Evaluates the records of the policy's slot in it.
///
/// # Errors
/// When the policy would not be loaded, or a line of the file is no record; the error says which.
pub fn replay(what: &Replay) -> anyhow::Result<Replayed> {
    let policy = OfflinePolicy::open(&what.policy, what.config.as_deref(), what.deadline_ms)?;
    match policy.slot {
        SlotName::Target => of_slot::<Target>(&policy, what),
        SlotName::Grace => of_slot::<Grace>(&policy, what),
        SlotName::Presence => of_slot::<Presence>(&policy, what),
        SlotName::Settle => of_slot::<Settle>(&policy, what),
    }
}

fn of_slot<S: Told>(policy: &OfflinePolicy, what: &Replay) -> anyhow::Result<Replayed> {
    let module = policy.module::<S>().with_context(|| what.policy.display().to_string())?;
    let mut run = Run::<S>::new(module.asker(), module.digest(), what.examples_max);
    each(&what.records, |line, record| run.take(line, &record))?;
    let Run { replayed, cells, .. } = run;
    let info = module.info();
    let policy = format!("{} {}", info.name, info.version);
    Ok(Replayed { policy, digest: module.digest(), slot: S::NAME, cells: cells.into_values().collect(), ..replayed })
}

/// Every record of a file, in order.
fn each(records: &Path, mut take: impl FnMut(u64, DecisionRecord)) -> anyhow::Result<()> {
    let named = || records.display().to_string();
    let file = File::open(records).with_context(named)?;
    for record in record::records(BufReader::with_capacity(1 << 16, file)) {
        let (line, record) = record.with_context(named)?;
        take(line, record);
    }
    Ok(())
}

/// What came of a question: two are the same if the same would be done for the same reason.
#[derive(PartialEq)]
enum Outcome<V> {
    Verdict(V),
    Failed(FailureKind),
}

struct Run<'a, S: Told> {
    asker: Asker<'a, S>,
    digest: Digest,
    examples_max: usize,
    replayed: Replayed,
    /// By what was recorded and what came of it here.
    cells: BTreeMap<(String, String), Cell>,
}

impl<'a, S: Told> Run<'a, S> {
    fn new(asker: Asker<'a, S>, digest: Digest, examples_max: usize) -> Self {
        Self { asker, digest, examples_max, replayed: Replayed::empty(digest, S::NAME), cells: BTreeMap::new() }
    }

    fn take(&mut self, line: u64, record: &DecisionRecord) {
        self.replayed.read += 1;
        let Some((question, verdict)) = S::of(&record.exchange) else {
            return;
        };
        self.replayed.of_slot += 1;
        let answer = self.asker.ask(question);
        self.replayed.cost.note(answer.cost);
        let recorded = record.failure.map_or(Outcome::Verdict(*verdict), Outcome::Failed);
        let here = match &answer.verdict {
            Ok(verdict) => Outcome::Verdict(*verdict),
            Err(error) => {
                *self.replayed.failures.entry(error.kind.as_str()).or_default() += 1;
                Outcome::Failed(error.kind)
            }
        };
        let is_of_this = record.by == Decider::Wasm && record.digest == Some(self.digest);
        let agrees = recorded == here;
        self.replayed.of_this_generation += u64::from(is_of_this);
        self.replayed.agreed += u64::from(agrees);
        self.replayed.agreed_of_this_generation += u64::from(agrees && is_of_this);
        if !agrees {
            self.disagree(line, record, question, &recorded, &here);
        }
    }

    fn disagree(
        &mut self,
        line: u64,
        record: &DecisionRecord,
        question: &S::Question,
        recorded: &Outcome<S::Verdict>,
        here: &Outcome<S::Verdict>,
    ) {
        let is_native = record.by == Decider::Native && record.failure.is_none();
        let from = label::<S>(recorded);
        let mut to = label::<S>(here);
        if from == to {
            to.push_str(S::OTHER);
        }
        let from = if is_native { format!("native: {from}") } else { from };
        let new = Cell { recorded: from.clone(), here: to.clone(), count: 0, examples: Vec::new() };
        let cell = self.cells.entry((from, to)).or_insert(new);
        cell.count += 1;
        if cell.examples.len() < self.examples_max {
            let told = |outcome: &Outcome<S::Verdict>| match outcome {
                Outcome::Verdict(verdict) => one_line(verdict),
                Outcome::Failed(kind) => kind.as_str().to_owned(),
            };
            cell.examples.push(Example {
                line,
                id: record.id(),
                recorded: told(recorded),
                here: told(here),
                question: one_line(question),
            });
        }
    }
}

fn label<S: Told>(outcome: &Outcome<S::Verdict>) -> String {
    match outcome {
        Outcome::Verdict(verdict) => S::kind(verdict).to_owned(),
        Outcome::Failed(kind) => format!("failed: {}", kind.as_str()),
    }
}

#[cfg(test)]
mod tests;
