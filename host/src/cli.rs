//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, value_parser};
use pointwork_policy::SlotName;

use crate::config::{Assignment, ConfigError, Sources};
use crate::policy_record::Recording;
use crate::policy_replay::Replay;
use crate::policy_simulate::SimulateArgs;
use crate::policy_test::PolicyTest;
use crate::token::TokenRequest;

/// A Socket.IO host whose routing decisions are WebAssembly policies, swapped while it serves.
#[derive(Parser, Debug)]
#[command(name = "pointwork", version)]
pub struct Cli {
    /// What the settings are made of.
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// What to do; without it, serve.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What the host can do.
#[derive(Subcommand, Debug, Clone, Default)]
pub enum Command {
    /// Serve until SIGTERM or SIGINT (also without a command)
    #[default]
    Serve,
    /// Print the settings in effect as TOML, secrets hidden
    Config,
    /// Print a token for development, signed with auth.hs256_secret
    Token(TokenArgs),
    /// Work with policies
    #[command(subcommand)]
    Policy(PolicyCommand),
}

/// What can be done with policies.
#[derive(Subcommand, Debug, Clone)]
pub enum PolicyCommand {
    /// Load policy files as the host would, each with the JSON file beside it, and say what they are
    Check {
        /// The slot that they are meant for
        #[arg(long, value_parser = str::parse::<SlotName>)]
        slot: Option<SlotName>,
        /// The policies' files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Ask a policy what was asked in a recording, and say where it would have decided otherwise
    Replay(ReplayArgs),
    /// Try a policy on golden vectors and on generated inputs
    Test(PolicyTestArgs),
    /// Play two rules for a slot in the same simulated worlds, and compare what that was like
    Simulate(Box<SimulateArgs>),
    /// Write the last decisions of a host that runs into a file
    Record(RecordArgs),
}

impl PolicyCommand {
    /// Whether it needs neither settings nor a host.
    #[must_use]
    pub fn is_offline(&self) -> bool {
        match self {
            Self::Check { .. } | Self::Replay(_) | Self::Test(_) | Self::Simulate(_) => true,
            Self::Record(_) => false,
        }
    }
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
    /// Where the host's admin API is [default: admin.address]
    #[arg(long, value_name = "URL")]
    admin_url: Option<String>,
}

impl From<RecordArgs> for Recording {
    fn from(args: RecordArgs) -> Self {
        let RecordArgs { out, slot, limit, admin_url } = args;
        Self { out, slot, limit, admin_url }
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

/// What a token should say.
#[derive(Args, Debug, Clone)]
pub struct TokenArgs {
    /// The user
    #[arg(long, value_name = "USER")]
    sub: String,
    /// Seconds until it expires; without it, it never does
    #[arg(long, value_name = "SECONDS")]
    ttl_s: Option<u64>,
    /// One more claim; a value that is JSON is taken as JSON, any other as text; repeatable
    #[arg(long = "claim", value_name = "NAME=VALUE")]
    claims: Vec<String>,
}

impl From<TokenArgs> for TokenRequest {
    fn from(args: TokenArgs) -> Self {
        Self { sub: args.sub, ttl_s: args.ttl_s, claims: args.claims }
    }
}

/// The flags that make settings; they may stand before or after the command.
// All are texts: what is wrong with a value is said by the settings, in the same words for every layer.
#[derive(Args, Default, Clone)]
pub struct SettingsArgs {
    /// Settings file, TOML [env: POINTWORK_CONFIG]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Where clients connect: listen.address
    #[arg(long, value_name = "ADDRESS", global = true)]
    listen: Option<String>,
    /// Where the admin API listens: admin.address
    #[arg(long, value_name = "ADDRESS", global = true)]
    admin: Option<String>,
    /// Where the policies are: policy.dir
    #[arg(long, value_name = "DIR", global = true)]
    policy_dir: Option<String>,
    /// Any setting; repeatable, the last one stands, over the flags above
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE", global = true)]
    set: Vec<String>,
}

// Not derived: a `--set` may hold a secret.
impl std::fmt::Debug for SettingsArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SettingsArgs").field("config", &self.config).finish_non_exhaustive()
    }
}

impl SettingsArgs {
    /// The sources of the settings: these flags, and `environment` as [`std::env::vars_os`] gives it.
    ///
    /// # Errors
    /// When a `--set` is not written `section.key=value`.
    pub fn sources(self, environment: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Sources, ConfigError> {
        let plain = [
            ("--listen", "listen.address", self.listen),
            ("--admin", "admin.address", self.admin),
            ("--policy-dir", "policy.dir", self.policy_dir),
        ];
        let mut flags: Vec<Assignment> = plain
            .into_iter()
            .filter_map(|(flag, setting, value)| Some(Assignment::new(setting, value?, format!("flag {flag}"))))
            .collect();
        for set in &self.set {
            flags.push(Assignment::parse(set)?);
        }
        Ok(Sources { file: self.config, environment: environment.into_iter().collect(), flags })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::config;

    fn cli(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    fn settings(line: &str) -> Result<config::Config, ConfigError> {
        config::load(cli(line).unwrap().settings.sources([])?)
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn without_a_command_it_serves() {
        assert!(matches!(cli("pointwork").unwrap().command.unwrap_or_default(), Command::Serve));
        assert!(matches!(cli("pointwork serve").unwrap().command, Some(Command::Serve)));
        assert!(matches!(cli("pointwork config").unwrap().command, Some(Command::Config)));
    }

    #[test]
    fn flags_make_settings_before_and_after_the_command() {
        for line in [
            "pointwork --listen 0.0.0.0:1 --admin 127.0.0.1:2 --policy-dir p --set rpc.grace_ms=3 serve",
            "pointwork serve --listen 0.0.0.0:1 --admin 127.0.0.1:2 --policy-dir p --set rpc.grace_ms=3",
        ] {
            let config = settings(line).unwrap();
            assert_eq!(config.listen.address.to_string(), "0.0.0.0:1");
            assert_eq!(config.admin.address.to_string(), "127.0.0.1:2");
            assert_eq!(config.policy.dir.unwrap().to_str(), Some("p"));
            assert_eq!(config.rpc.grace_ms.get(), 3);
        }
    }

    #[test]
    fn a_wrong_flag_is_named() {
        let message = |line| settings(line).unwrap_err().to_string();
        assert!(message("pointwork --listen localhost:1").ends_with("(flag --listen)"));
        assert!(message("pointwork --set rpc.grace=1").contains("flag --set rpc.grace"));
        assert!(message("pointwork --set rpc.grace_ms").contains("section.key=value"));
        assert!(message("pointwork --config /no/such/file.toml").contains("/no/such/file.toml"));
    }

    #[test]
    fn the_last_set_stands_and_stands_over_a_plain_flag() {
        let config =
            settings("pointwork --set listen.address=1.1.1.1:1 --set listen.address=2.2.2.2:2 --listen 3.3.3.3:3");
        assert_eq!(config.unwrap().listen.address.to_string(), "2.2.2.2:2");
    }

    #[test]
    fn a_token_is_for_a_user() {
        let given = cli("pointwork token --sub ada --ttl-s 60 --claim a=1 --claim b=x").unwrap();
        let Some(Command::Token(args)) = given.command else { panic!("{given:?}") };
        let request = TokenRequest::from(args);
        assert_eq!((request.sub.as_str(), request.ttl_s), ("ada", Some(60)));
        assert_eq!(request.claims, ["a=1", "b=x"]);
        assert!(cli("pointwork token").is_err());
    }

    #[test]
    fn a_check_needs_files() {
        let given = cli("pointwork policy check a.wasm b.wasm").unwrap();
        let Some(Command::Policy(PolicyCommand::Check { files, slot: None })) = given.command else {
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
        let Some(Command::Policy(PolicyCommand::Replay(args))) = given.command else { panic!("{given:?}") };
        let replay = Replay::from(args);
        assert_eq!(replay.config.unwrap().to_str(), Some(r#"{"a":1}"#));
        assert_eq!((replay.examples_max, replay.deadline_ms), (3, None));
        assert!(cli("pointwork policy replay --policy a.wasm").is_err());
        assert!(cli("pointwork policy replay --policy a.wasm --records r --deadline-ms 0").is_err());
    }

    #[test]
    fn a_test_is_of_one_policy() {
        let given = cli("pointwork policy test a.wasm --count 5 --config c.json").unwrap();
        let Some(Command::Policy(PolicyCommand::Test(args))) = given.command else { panic!("{given:?}") };
        let test = PolicyTest::from(args);
        assert_eq!((test.count, test.seed, test.vectors), (5, 1, None));
        assert!(cli("pointwork policy test").is_err());
    }

    #[test]
    fn no_secret_is_shown() {
        let given = cli("pointwork --set auth.hs256_secret=sesame").unwrap();
        assert!(!format!("{given:?}").contains("sesame"));
    }
}
