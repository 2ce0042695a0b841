//! `pointwork policy replay`: asks a policy the questions of a recording, and reports where it decides differently.
//!
//! A question holds its time and its seed, so the same module with the same configuration gives the same verdicts. The file is read
//! as a stream; only counts and the first examples of each disagreement are kept.

mod comparison;
mod report;

use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::{Args, value_parser};
use pointwork_policy::{
    Grace, Presence, Settle, SlotName, Target,
    record::{self, DecisionRecord},
};

use crate::{offline_policy::OfflinePolicy, verdict_kind::VerdictKind};

use comparison::Comparison;
pub use report::{DisagreementExample, MatrixCell, ReplayReport};

/// What to replay.
#[derive(Args, Debug, Clone)]
pub struct ReplayArgs {
    /// The policy's file
    #[arg(long, value_name = "FILE")]
    pub policy: PathBuf,
    /// The recording, as `policy record` or `policy.records.file` writes it
    #[arg(long, value_name = "FILE")]
    pub records: PathBuf,
    /// The policy's configuration, a JSON object or the file that holds one; without it, the JSON file beside the policy
    // It has the type and name of the host's flag for settings, because clap also gives the value of that global flag to it.
    #[arg(long, value_name = "JSON")]
    pub config: Option<PathBuf>,
    /// What a decision may take, in milliseconds [default: as in a host]
    #[arg(long, value_name = "MS", value_parser = value_parser!(u64).range(1..=60_000))]
    pub deadline_ms: Option<u64>,
    /// How many examples of each disagreement are shown
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u16).range(0..=1_000))]
    pub examples: u16,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Asks the policy every question of its slot.
///
/// # Errors
/// When the policy would not be loaded, or a line of the file is no record; the error names the line.
pub fn replay(args: &ReplayArgs) -> anyhow::Result<ReplayReport> {
    let policy = OfflinePolicy::open(&args.policy, args.config.as_deref(), args.deadline_ms)?;
    match policy.slot {
        SlotName::Target => replay_slot::<Target>(&policy, args),
        SlotName::Grace => replay_slot::<Grace>(&policy, args),
        SlotName::Presence => replay_slot::<Presence>(&policy, args),
        SlotName::Settle => replay_slot::<Settle>(&policy, args),
    }
}

fn replay_slot<S: VerdictKind>(policy: &OfflinePolicy, args: &ReplayArgs) -> anyhow::Result<ReplayReport> {
    let module = policy.module::<S>().with_context(|| args.policy.display().to_string())?;
    let mut comparison = Comparison::<S>::new(&module, args.examples.into());
    for_each_record(&args.records, |line, record| comparison.add(line, &record))?;
    Ok(comparison.into_report())
}

/// Reads the records of a file in order, each with the number of its line.
fn for_each_record(file: &Path, mut handle_record: impl FnMut(u64, DecisionRecord)) -> anyhow::Result<()> {
    let name = || file.display().to_string();
    let input = BufReader::with_capacity(1 << 16, File::open(file).with_context(name)?);
    for record in record::records(input) {
        let (line, record) = record.with_context(name)?;
        handle_record(line, record);
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn names_the_file_and_line_that_is_no_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        std::fs::write(&path, "\n\n{}\n").unwrap();
        let error = format!("{:#}", for_each_record(&path, |_, _| panic!("no record")).unwrap_err());
        assert!(error.contains("r.jsonl: line 3: missing field `v`"), "{error}");
        assert!(for_each_record(&folder.path().join("none"), |_, _| ()).is_err());
    }
}
