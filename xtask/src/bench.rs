//! `bench`: criterion's benches, the host under ten thousand idle sockets, and a fleet of devices that comes back after a restart
//! (needs `redis-server`), in the one profile that everything else uses too.

use anyhow::Result;
use clap::Args;

use crate::command::{self, cargo};
use crate::policies;
use crate::workspace::Workspace;

#[derive(Args)]
pub(crate) struct Options {
    /// Passed on to `cargo bench`; what is for criterion goes after a further `--`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds the policies and the host that are measured, then measures. Errors when any of it fails.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    policies::build_all(workspace)?;
    policies::build_host(workspace)?;
    command::run(cargo(workspace, ["bench", "--package=pointwork-tests", "--profile=dev"]).args(&options.arguments))
}
