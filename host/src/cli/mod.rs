//! The command line.

pub mod admin_client;
mod exp;
pub mod experiments;
mod policy;
pub mod record;
pub mod rollout;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::{Assignment, ConfigError, Sources};
use crate::edge::auth::token::TokenRequest;

pub use exp::ExpCommand;
pub use policy::{FileCommand, HostCommand, PolicyCommand};

/// A Socket.IO host whose routing decisions are WebAssembly policies, swapped while it serves.
#[derive(Parser, Debug)]
#[command(name = "pointwork", version)]
pub struct Cli {
    /// What the settings are made of.
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// The host that a command talks to, such as http://127.0.0.1:9090; without it, that of admin.address
    #[arg(long, value_name = "URL", global = true)]
    pub admin_url: Option<String>,
    /// What to do; without it, serve.
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Cli {
    /// The command line as it is given. Behind `policy push` a `--config` is the policy's, elsewhere it is the settings file.
    pub fn of(given: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut given: Vec<OsString> = given.into_iter().collect();
        let push = given.windows(2).position(|pair| pair[0] == "policy" && pair[1] == "push");
        for argument in given.iter_mut().skip(push.map_or(usize::MAX, |at| at + 2)) {
            if let Some(rest) = argument.to_str().and_then(|text| text.strip_prefix("--config"))
                && (rest.is_empty() || rest.starts_with('='))
            {
                *argument = format!("--policy-config{rest}").into();
            }
        }
        Self::try_parse_from(given)
    }
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
    /// Experiments: two or more rules in one slot, each for its share of the devices or users
    #[command(subcommand)]
    Exp(ExpCommand),
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
    /// Who vouches for the host that a command asks over https, PEM: admin.ca
    #[arg(long, value_name = "FILE", global = true)]
    admin_ca: Option<String>,
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
            ("--admin-ca", "admin.ca", self.admin_ca),
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
    fn no_secret_is_shown() {
        let given = cli("pointwork --set auth.hs256_secret=sesame").unwrap();
        assert!(!format!("{given:?}").contains("sesame"));
    }
}
