//! Parses the command line.

use std::{ffi::OsString, fmt, path::PathBuf};

use clap::{Args, Parser, Subcommand};

use super::{exp::ExpCommand, policy::PolicyCommand, token::TokenArgs};
use crate::config::{Assignment, ConfigError, Sources};

/// A Socket.IO host whose routing decisions are WebAssembly policies, swapped while it serves.
#[derive(Parser, Debug)]
#[command(name = "pointwork", version)]
pub struct Cli {
    /// What the settings are made of.
    #[command(flatten)]
    pub(super) settings: SettingsArgs,
    /// The host that a command talks to, such as http://127.0.0.1:9090; without it, that of admin.address
    #[arg(long, value_name = "URL", global = true)]
    pub(super) admin_url: Option<String>,
    /// What to do; without it, serve.
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

impl Cli {
    /// Parses the arguments of the process, the first of which is its name. After `policy push`, `--config` means the policy's
    /// configuration; elsewhere it means the settings file.
    ///
    /// # Errors
    /// When the arguments are wrong, or ask for help or the version: the error prints it and knows the exit code.
    pub fn parse_arguments(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut arguments: Vec<OsString> = arguments.into_iter().collect();
        let push = arguments.windows(2).position(|pair| pair[0] == "policy" && pair[1] == "push");
        for argument in arguments.iter_mut().skip(push.map_or(usize::MAX, |at| at + 2)) {
            if let Some(rest) = argument.to_str().and_then(|text| text.strip_prefix("--config"))
                && (rest.is_empty() || rest.starts_with('='))
            {
                *argument = format!("--policy-config{rest}").into();
            }
        }
        Self::try_parse_from(arguments)
    }
}

/// What the host can do.
#[derive(Subcommand, Debug, Clone, Default)]
pub(super) enum Command {
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

/// The flags that make settings; they may stand before or after the command.
// All are texts: the settings check the values, with the same error for each source.
#[derive(Args, Default, Clone)]
pub(super) struct SettingsArgs {
    /// Settings file, TOML [env: POINTWORK_CONFIG]
    #[arg(long, value_name = "FILE", global = true)]
    pub(super) config: Option<PathBuf>,
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
impl fmt::Debug for SettingsArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettingsArgs").field("config", &self.config).finish_non_exhaustive()
    }
}

impl SettingsArgs {
    /// The sources of the settings: these flags, and `environment` as [`std::env::vars_os`] gives it.
    ///
    /// # Errors
    /// When a `--set` is not written `section.key=value`.
    pub(super) fn sources(
        self,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Sources, ConfigError> {
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
