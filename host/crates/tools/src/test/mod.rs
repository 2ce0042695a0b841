//! `pointwork policy test`: tests a policy with golden vectors and with generated questions.

mod generated;
mod report;
mod vectors;

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, value_parser};
use pointwork_policy::{Grace, Presence, Settle, SlotName, Target, record::Recorded};

use crate::{offline_policy::OfflinePolicy, questions::Generated};

pub use report::{InputResults, TestReport};

/// What to test.
#[derive(Args, Debug, Clone)]
pub struct TestArgs {
    /// The policy's file
    #[arg(value_name = "FILE")]
    pub policy: PathBuf,
    /// The golden vectors; without it, those beside the policy: NAME.vectors.jsonl beside NAME.wasm
    #[arg(long, value_name = "FILE")]
    pub vectors: Option<PathBuf>,
    /// The policy's configuration, a JSON object or the file that holds one; without it, the JSON file beside the policy
    #[arg(long, value_name = "JSON")]
    pub config: Option<PathBuf>,
    /// How many inputs are generated
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = value_parser!(u64).range(0..=10_000_000))]
    pub count: u64,
    /// What they are generated from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// What a decision may take, in milliseconds [default: as in a host]
    #[arg(long, value_name = "MS", value_parser = value_parser!(u64).range(1..=60_000))]
    pub deadline_ms: Option<u64>,
}

/// Tests a policy.
///
/// # Errors
/// When the policy would not be loaded, or a line of the vectors is no vector.
pub fn test(args: &TestArgs) -> anyhow::Result<TestReport> {
    let policy = OfflinePolicy::open(&args.policy, args.config.as_deref(), args.deadline_ms)?;
    match policy.slot {
        SlotName::Target => test_slot::<Target>(&policy, args),
        SlotName::Grace => test_slot::<Grace>(&policy, args),
        SlotName::Presence => test_slot::<Presence>(&policy, args),
        SlotName::Settle => test_slot::<Settle>(&policy, args),
    }
}

fn test_slot<S: Recorded + Generated>(policy: &OfflinePolicy, args: &TestArgs) -> anyhow::Result<TestReport> {
    let module = policy.module::<S>().with_context(|| args.policy.display().to_string())?;
    let beside = Some(args.policy.with_extension("vectors.jsonl")).filter(|beside| beside.exists());
    let vectors = args.vectors.clone().or(beside);
    let golden = match &vectors {
        Some(vectors) => vectors::check::<S>(policy, &module, vectors)?,
        None => InputResults::default(),
    };
    let (generated, costs) = generated::check(&module, args.seed, args.count);
    let info = module.info();
    let policy = format!("{} {}", info.name, info.version);
    Ok(TestReport { policy, slot: S::NAME, vectors, golden, generated, cost: costs.quantiles() })
}
