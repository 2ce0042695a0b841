//! Checks the workspace: all checks in order, and those that can be run by themselves.

mod dependencies;
mod deploy;
mod peers;
mod structure;
pub(crate) mod test;

use clap::Subcommand;

use crate::workspace::Workspace;

/// The checks that can be run by name.
#[derive(Subcommand)]
pub(crate) enum Check {
    /// Checks files, folders and imports against the rules in `xtask/structure.toml`.
    Structure(structure::Options),
}

impl Check {
    /// Errors when the check fails.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            // It can check another tree than this workspace.
            Self::Structure(options) => structure::run(options, || Ok(Workspace::load()?.root)),
        }
    }
}
