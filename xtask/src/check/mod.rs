//! Checks of the workspace that are run one by one.

pub(crate) mod structure;

use clap::Subcommand;

use crate::workspace::Workspace;

/// The checks that can be run by name.
#[derive(Subcommand)]
pub(crate) enum Check {
    /// Checks files, folders and imports against the rules in `xtask/structure.toml`.
    Structure(structure::Options),
}

/// Errors when the check fails.
pub(crate) fn run(check: &Check) -> anyhow::Result<()> {
    match check {
        Check::Structure(options) => structure::run(options, || Ok(Workspace::load()?.root)),
    }
}
