//! Reports which inputs a policy answered as it should.

use std::{fmt, path::PathBuf};

use pointwork_policy::SlotName;

use crate::decision_costs::CostQuantiles;

/// How many failures of each kind of test the report describes.
const FAILURES_SHOWN_MAX: usize = 10;

/// The result of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct TestReport {
    /// Name and version of the policy.
    pub policy: String,
    /// The slot that it is for.
    pub slot: SlotName,
    /// The file of the vectors, if there is one.
    pub vectors: Option<PathBuf>,
    /// The results of the vectors.
    pub golden: InputResults,
    /// The results of the generated inputs.
    pub generated: InputResults,
    /// How long the answers to generated inputs took; `None` without any.
    pub cost: Option<CostQuantiles>,
}

/// How many inputs were tried, and which failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputResults {
    /// Inputs.
    pub tried: u64,
    /// Inputs that failed.
    pub failed: u64,
    /// The first failures, each described on one line.
    pub failures: Vec<String>,
}

impl InputResults {
    /// Counts an input that failed.
    pub(super) fn add_failure(&mut self, describe: impl FnOnce() -> String) {
        self.failed += 1;
        if self.failures.len() < FAILURES_SHOWN_MAX {
            self.failures.push(describe());
        }
    }
}

impl TestReport {
    /// Whether no input failed.
    pub fn is_good(&self) -> bool {
        self.golden.failed == 0 && self.generated.failed == 0
    }
}

impl fmt::Display for TestReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} for slot {}", self.policy, self.slot)?;
        match &self.vectors {
            Some(vectors) => writeln!(f, "vectors     {} ({})", self.golden, vectors.display())?,
            None => writeln!(f, "vectors     none beside it")?,
        }
        self.golden.failures.iter().try_for_each(|failure| writeln!(f, "  {failure}"))?;
        writeln!(f, "generated   {}", self.generated)?;
        self.generated.failures.iter().try_for_each(|failure| writeln!(f, "  {failure}"))?;
        self.cost.map_or(Ok(()), |cost| writeln!(f, "cost        {cost}"))
    }
}

impl fmt::Display for InputResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} as they should be", self.tried - self.failed, self.tried)
    }
}
