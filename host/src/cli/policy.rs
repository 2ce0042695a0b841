//! `pointwork policy`: what is done with a policy's file, and what is asked of a host that runs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, value_parser};
use pointwork_policy::SlotName;

use crate::cli::record::Recording;
use crate::cli::rollout::Push;
use pointwork_tools::replay::Replay;
use pointwork_tools::simulate::SimulateArgs;
use pointwork_tools::test::PolicyTest;

/// What can be done with policies.
#[derive(Subcommand, Debug, Clone)]
pub enum PolicyCommand {
    /// With a file.
    #[command(flatten)]
    File(FileCommand),
    /// By a host.
    #[command(flatten)]
    Host(HostCommand),
}

/// What needs neither settings nor a host.
#[derive(Subcommand, Debug, Clone)]
pub enum FileCommand {
    /// Load policy files as the host would, each with the JSON file beside it, and say what they are
    Check {
        /// The slot that they are meant for
        #[arg(long, value_parser = str::parse::<SlotName>)]
        slot: Option<SlotName>,
        /// The policies' files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Try a policy on golden vectors and on generated inputs
    Test(PolicyTestArgs),
    /// Ask a policy what was asked in a recording, and say where it would have decided otherwise
    Replay(ReplayArgs),
    /// Play two rules for a slot in the same simulated worlds, and compare what that was like
    Simulate(Box<SimulateArgs>),
}

/// What is asked of a host that runs.
#[derive(Subcommand, Debug, Clone)]
pub enum HostCommand {
    /// Write the last decisions of a host into a file
    Record(RecordArgs),
    /// Push a module to every replica of a cluster: all prepare it, then all serve it, or none does
    Push(PushArgs),
    /// Which policy serves each slot
    List,
    /// Which policy each replica serves, and what went wrong
    Status {
        /// One slot only
        #[arg(long, value_parser = str::parse::<SlotName>)]
        slot: Option<SlotName>,
        /// As the admin API gives it
        #[arg(long)]
        json: bool,
    },
    /// Back to what served before, on every replica
    Undo {
        /// The slot
        #[arg(long, value_parser = str::parse::<SlotName>)]
        slot: SlotName,
        /// How long to wait until all have switched; 0: not at all
        #[arg(long, value_name = "MS", default_value_t = WAIT_MS)]
        wait_ms: u64,
    },
    /// Take a digest out of quarantine and push it again
    Retry {
        /// The slot
        #[arg(long, value_parser = str::parse::<SlotName>)]
        slot: SlotName,
        /// The digest, or its first 12 digits or more
        digest: String,
        /// Have those replicas switch that can
        #[arg(long)]
        force: bool,
        /// How long to wait until all have switched; 0: not at all
        #[arg(long, value_name = "MS", default_value_t = WAIT_MS)]
        wait_ms: u64,
    },
    /// Fetch a module and, beside it, its configuration
    Pull {
        /// The slot
        #[arg(long, value_parser = str::parse::<SlotName>)]
        slot: SlotName,
        /// One that served before, or is in quarantine; without it, what serves
        #[arg(long)]
        digest: Option<String>,
        /// Where to write the module
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

/// What to replay.
#[derive(Args, Debug, Clone)]
pub struct ReplayArgs {
    /// The policy's file
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// The recording, as `policy record` or `policy.records.file` writes it
    #[arg(long, value_name = "FILE")]
    records: PathBuf,
    /// The policy's configuration, a JSON object or the file that holds one; without it, the JSON file beside the policy
    // Of the type and name of the flag for settings, which has no meaning here and which clap hands this value too.
    #[arg(long, value_name = "JSON")]
    config: Option<PathBuf>,
    /// What a decision may take, in milliseconds [default: as in a host]
    #[arg(long, value_name = "MS", value_parser = value_parser!(u64).range(1..=60_000))]
    deadline_ms: Option<u64>,
    /// How many examples of each disagreement are shown
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u16).range(0..=1_000))]
    examples: u16,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl From<ReplayArgs> for Replay {
    fn from(args: ReplayArgs) -> Self {
        let ReplayArgs { policy, records, config, deadline_ms, examples, json: _ } = args;
        Self { policy, config, records, deadline_ms, examples_max: examples.into() }
    }
}

/// What to record.
#[derive(Args, Debug, Clone)]
pub struct RecordArgs {
    /// The file, one JSON object a line; one that is there is written anew
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Decisions of this slot alone
    #[arg(long, value_parser = str::parse::<SlotName>)]
    slot: Option<SlotName>,
    /// So many at most
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

impl From<RecordArgs> for Recording {
    fn from(args: RecordArgs) -> Self {
        let RecordArgs { out, slot, limit } = args;
        Self { out, slot, limit }
    }
}

/// What to test.
#[derive(Args, Debug, Clone)]
pub struct PolicyTestArgs {
    /// The policy's file
    #[arg(value_name = "FILE")]
    policy: PathBuf,
    /// The golden vectors; without it, those beside the policy: NAME.vectors.jsonl beside NAME.wasm
    #[arg(long, value_name = "FILE")]
    vectors: Option<PathBuf>,
    /// The policy's configuration, a JSON object or the file that holds one; without it, the JSON file beside the policy
    #[arg(long, value_name = "JSON")]
    config: Option<PathBuf>,
    /// How many inputs are generated
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = value_parser!(u64).range(0..=10_000_000))]
    count: u64,
    /// What they are generated from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What a decision may take, in milliseconds [default: as in a host]
    #[arg(long, value_name = "MS", value_parser = value_parser!(u64).range(1..=60_000))]
    deadline_ms: Option<u64>,
}

impl From<PolicyTestArgs> for PolicyTest {
    fn from(args: PolicyTestArgs) -> Self {
        let PolicyTestArgs { policy, vectors, config, count, seed, deadline_ms } = args;
        Self { policy, config, vectors, count, seed, deadline_ms }
    }
}

/// How long a push is waited for unless asked otherwise: longer than it can take.
const WAIT_MS: u64 = 60_000;

/// What to push, and how.
#[derive(Args, Debug, Clone)]
pub struct PushArgs {
    /// The module
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The slot; by what the module exports when it is not said
    #[arg(long, value_parser = str::parse::<SlotName>)]
    slot: Option<SlotName>,
    /// The module's configuration, also --config when it stands behind `push`; without it, that of the JSON file beside it
    #[arg(long, value_name = "JSON|@FILE")]
    policy_config: Option<String>,
    /// Have those replicas switch that can
    #[arg(long)]
    force: bool,
    /// How long to wait until all have switched; 0: not at all
    #[arg(long, value_name = "MS", default_value_t = WAIT_MS)]
    wait_ms: u64,
}

impl From<PushArgs> for Push {
    fn from(args: PushArgs) -> Self {
        let PushArgs { file, slot, policy_config, force, wait_ms } = args;
        Self { file, slot, config: policy_config, force, wait: Duration::from_millis(wait_ms) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::cli::{Cli, Command};

    fn cli(line: &str) -> Result<Cli, clap::Error> {
        Cli::of(line.split(' ').map(OsString::from))
    }

    #[test]
    fn a_check_needs_files() {
        let given = cli("pointwork policy check a.wasm b.wasm").unwrap();
        let Some(Command::Policy(PolicyCommand::File(FileCommand::Check { files, slot: None }))) = given.command else {
            panic!("{given:?}")
        };
        assert_eq!(files, [PathBuf::from("a.wasm"), PathBuf::from("b.wasm")]);
        assert!(cli("pointwork policy check").is_err());
        assert!(cli("pointwork policy check --slot settle a.wasm").is_ok());
        assert!(cli("pointwork policy check --slot sale a.wasm").is_err());
    }

    #[test]
    fn a_policys_configuration_is_not_the_settings_file() {
        let given = cli(r#"pointwork policy replay --policy a.wasm --records r --config {"a":1}"#).unwrap();
        let Some(Command::Policy(PolicyCommand::File(FileCommand::Replay(args)))) = given.command else {
            panic!("{given:?}")
        };
        let replay = Replay::from(args);
        assert_eq!(replay.config.unwrap().to_str(), Some(r#"{"a":1}"#));
        assert_eq!((replay.examples_max, replay.deadline_ms), (3, None));
        assert!(cli("pointwork policy replay --policy a.wasm").is_err());
        assert!(cli("pointwork policy replay --policy a.wasm --records r --deadline-ms 0").is_err());
    }

    #[test]
    fn a_test_is_of_one_policy() {
        let given = cli("pointwork policy test a.wasm --count 5 --config c.json").unwrap();
        let Some(Command::Policy(PolicyCommand::File(FileCommand::Test(args)))) = given.command else {
            panic!("{given:?}")
        };
        let test = PolicyTest::from(args);
        assert_eq!((test.count, test.seed, test.vectors), (5, 1, None));
        assert!(cli("pointwork policy test").is_err());
    }

    #[test]
    fn a_config_behind_push_is_the_policys() {
        let given = "pointwork --config settings.toml policy push a.wasm --slot settle --config {} --force";
        let cli = Cli::of(given.split(' ').map(OsString::from)).unwrap();
        assert_eq!(cli.settings.config.unwrap(), PathBuf::from("settings.toml"));
        let Some(Command::Policy(PolicyCommand::Host(HostCommand::Push(args)))) = cli.command else {
            panic!("it is a push")
        };
        let push = Push::from(args);
        assert_eq!((push.config.as_deref(), push.force, push.slot), (Some("{}"), true, Some(SlotName::Settle)));
        let given = "pointwork policy push a.wasm --config=@a.json";
        let cli = Cli::of(given.split(' ').map(OsString::from)).unwrap();
        let Some(Command::Policy(PolicyCommand::Host(HostCommand::Push(args)))) = cli.command else {
            panic!("it is a push")
        };
        assert_eq!(Push::from(args).config.as_deref(), Some("@a.json"));
        let cli = Cli::of("pointwork serve --config settings.toml".split(' ').map(OsString::from)).unwrap();
        assert!(cli.settings.config.is_some());
    }
}
