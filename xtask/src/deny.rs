//! Licences, sources and advisories of the dependencies, by cargo-deny where it is installed.

use std::process::Command;

use anyhow::Result;

use crate::command::{self, cargo};
use crate::workspace::Workspace;

/// Errors when a check fails. Says what is skipped and why: cargo-deny takes minutes to build, so it is not installed from
/// here, and the advisories live in a database that has to be fetched.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    if !command::present("cargo-deny") {
        println!("skipped: cargo-deny is not installed (cargo install cargo-deny --locked)");
        return Ok(());
    }
    command::run(&mut cargo(workspace, ["deny", "--offline", "check", "bans", "licenses", "sources"]))?;
    if !fetched(workspace) {
        println!("skipped: the advisories, for their database cannot be fetched");
        return Ok(());
    }
    command::run(&mut cargo(workspace, ["deny", "--offline", "check", "advisories"]))
}

fn fetched(workspace: &Workspace) -> bool {
    let mut fetch: Command = cargo(workspace, ["deny", "fetch", "db"]);
    command::run(&mut fetch).is_ok()
}
