//! `pointwork policy test`: golden vectors, and generated inputs that a policy must answer alike, in time and within bounds.

mod generated;
mod vectors;

use std::{fmt, path::PathBuf};

use anyhow::Context;
use pointwork_policy::{Grace, Presence, Settle, SlotName, Target};

use crate::{
    policy_file::OfflinePolicy,
    questions::Generated,
    replay::{CostsShown, Told},
};

/// How many failures are told of each kind of test.
const TOLD_MAX: usize = 10;

/// What is to be tested.
#[derive(Debug, Clone)]
pub struct PolicyTest {
    /// The policy's file.
    pub policy: PathBuf,
    /// Its configuration: a JSON object, or the file that holds one; without it, the JSON file beside the policy.
    pub config: Option<PathBuf>,
    /// The golden vectors; without it, the file beside the policy that has its name and ends in `.vectors.jsonl`, if there is one.
    pub vectors: Option<PathBuf>,
    /// How many inputs are generated.
    pub count: u64,
    /// What they are generated from.
    pub seed: u64,
    /// What a decision may take, in milliseconds; without it, what a slot has by default.
    pub deadline_ms: Option<u64>,
}

/// What came of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// Name and version of the policy.
    pub policy: String,
    /// The slot that it is for.
    pub slot: SlotName,
    /// Where the vectors were, if there were any.
    pub vectors: Option<PathBuf>,
    /// Of the vectors.
    pub golden: Tally,
    /// Of the generated inputs.
    pub generated: Tally,
    /// What answers to generated inputs took; `None` without any.
    pub cost: Option<CostsShown>,
}

/// How many inputs were tried, and which did not do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Inputs.
    pub tried: u64,
    /// Those that did not do.
    pub failed: u64,
    /// The first of them in words, each a line.
    pub told: Vec<String>,
}

impl Tally {
    fn fail(&mut self, told: impl FnOnce() -> String) {
        self.failed += 1;
        if self.told.len() < TOLD_MAX {
            self.told.push(told());
        }
    }
}

/// Tests a policy.
///
/// # Errors
/// When it would not be loaded, or a line of the vectors is no vector.
pub fn test(what: &PolicyTest) -> anyhow::Result<Tested> {
    let policy = OfflinePolicy::open(&what.policy, what.config.as_deref(), what.deadline_ms)?;
    match policy.slot {
        SlotName::Target => of_slot::<Target>(&policy, what),
        SlotName::Grace => of_slot::<Grace>(&policy, what),
        SlotName::Presence => of_slot::<Presence>(&policy, what),
        SlotName::Settle => of_slot::<Settle>(&policy, what),
    }
}

fn of_slot<S: Told + Generated>(policy: &OfflinePolicy, what: &PolicyTest) -> anyhow::Result<Tested> {
    let module = policy.module::<S>().with_context(|| what.policy.display().to_string())?;
    let beside = Some(what.policy.with_extension("vectors.jsonl")).filter(|beside| beside.exists());
    let vectors = what.vectors.clone().or(beside);
    let golden = match &vectors {
        Some(vectors) => self::vectors::check::<S>(policy, &module, vectors)?,
        None => Tally::default(),
    };
    let (generated, costs) = generated::check(&module, what.seed, what.count);
    let info = module.info();
    let policy = format!("{} {}", info.name, info.version);
    Ok(Tested { policy, slot: S::NAME, vectors, golden, generated, cost: costs.shown() })
}

impl Tested {
    /// Whether every input did.
    pub fn is_good(&self) -> bool {
        self.golden.failed == 0 && self.generated.failed == 0
    }
}

impl fmt::Display for Tested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let good = |tally: &Tally| format!("{} of {} as they should be", tally.tried - tally.failed, tally.tried);
        writeln!(f, "{} for slot {}", self.policy, self.slot)?;
        match &self.vectors {
            Some(vectors) => writeln!(f, "vectors     {} ({})", good(&self.golden), vectors.display())?,
            None => writeln!(f, "vectors     none beside it")?,
        }
        self.golden.told.iter().try_for_each(|told| writeln!(f, "  {told}"))?;
        writeln!(f, "generated   {}", good(&self.generated))?;
        self.generated.told.iter().try_for_each(|told| writeln!(f, "  {told}"))?;
        match self.cost {
            Some(cost) => writeln!(f, "cost        p50 {:.2} us, p99 {:.2} us", cost.p50_us, cost.p99_us),
            None => Ok(()),
        }
    }
}
