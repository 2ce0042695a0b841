//! Compares recorded decisions with those of a policy.

use std::collections::BTreeMap;

use pointwork_policy::{
    Asker, FailureKind, Module,
    record::{Decider, DecisionRecord},
};

use super::report::{DisagreementExample, MatrixCell, ReplayReport};
use crate::verdict_kind::{VerdictKind, shortened_json};

/// A policy and what the comparison has found so far.
pub(super) struct Comparison<'a, S: VerdictKind> {
    asker: Asker<'a, S>,
    examples_max: usize,
    report: ReplayReport,
    /// Disagreements by the recorded result and the result of this policy.
    cells: BTreeMap<(String, String), MatrixCell>,
}

/// The result of a question. Two failures are the same if their kinds are.
type QuestionResult<V> = Result<V, FailureKind>;

impl<'a, S: VerdictKind> Comparison<'a, S> {
    /// A comparison with a module, which keeps `examples_max` examples of each disagreement.
    pub(super) fn new(module: &'a Module<S>, examples_max: usize) -> Self {
        let info = module.info();
        let report = ReplayReport::new(format!("{} {}", info.name, info.version), module.digest(), S::NAME);
        Self { asker: module.asker(), examples_max, report, cells: BTreeMap::new() }
    }

    /// Asks the question of a record if it is of the policy's slot. `line` is the number of its line.
    pub(super) fn add(&mut self, line: u64, record: &DecisionRecord) {
        self.report.read += 1;
        let Some((question, verdict)) = S::of(&record.exchange) else {
            return;
        };
        self.report.of_slot += 1;
        let answer = self.asker.ask(question);
        self.report.cost.record(answer.cost);
        let recorded = record.failure.map_or(Ok(*verdict), Err);
        let here = answer.verdict.map_err(|error| error.kind);
        if let Err(kind) = here {
            *self.report.failures.entry(kind.as_str()).or_default() += 1;
        }
        let is_of_this = record.by == Decider::Wasm && record.digest == Some(self.report.digest);
        let agrees = recorded == here;
        self.report.of_this_generation += u64::from(is_of_this);
        self.report.agreed += u64::from(agrees);
        self.report.agreed_of_this_generation += u64::from(agrees && is_of_this);
        if !agrees {
            self.add_disagreement(line, record, question, recorded, here);
        }
    }

    fn add_disagreement(
        &mut self,
        line: u64,
        record: &DecisionRecord,
        question: &S::Question,
        recorded: QuestionResult<S::Verdict>,
        here: QuestionResult<S::Verdict>,
    ) {
        let mut from = kind::<S>(&recorded);
        let mut to = kind::<S>(&here);
        if from == to {
            to.push_str(S::DIFFERENCE);
        }
        if record.by == Decider::Native && record.failure.is_none() {
            from.insert_str(0, "native: ");
        }
        let new = MatrixCell { recorded: from.clone(), here: to.clone(), count: 0, examples: Vec::new() };
        let cell = self.cells.entry((from, to)).or_insert(new);
        cell.count += 1;
        if cell.examples.len() < self.examples_max {
            let shown = |result: QuestionResult<S::Verdict>| match result {
                Ok(verdict) => shortened_json(&verdict),
                Err(kind) => kind.as_str().to_owned(),
            };
            let (recorded, here, question) = (shown(recorded), shown(here), shortened_json(question));
            cell.examples.push(DisagreementExample { line, id: record.id(), recorded, here, question });
        }
    }

    /// The report.
    pub(super) fn into_report(self) -> ReplayReport {
        ReplayReport { cells: self.cells.into_values().collect(), ..self.report }
    }
}

fn kind<S: VerdictKind>(result: &QuestionResult<S::Verdict>) -> String {
    match result {
        Ok(verdict) => S::kind(verdict).to_owned(),
        Err(kind) => format!("failed: {}", kind.as_str()),
    }
}
