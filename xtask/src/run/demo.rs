//! Runs unmodified clients against the host that `up` runs.

use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;

use crate::command;
use crate::install::npm;
use crate::workspace::Workspace;

/// Runs until it is interrupted. Errors when no `up` is running, or when node or npm fail.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let file = workspace.up().join("env");
    let environment = fs::read_to_string(&file)
        .with_context(|| format!("{} is missing: start `cargo xtask up` in another terminal first", file.display()))?;
    npm::ensure(&workspace.clients())?;
    let mut node = Command::new("node");
    node.arg(workspace.clients().join("demo.mjs"));
    for (name, value) in environment.lines().filter_map(|line| line.split_once('=')) {
        node.env(name, value);
    }
    command::run(&mut node)
}
