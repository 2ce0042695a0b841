//! Installs what the tests need beside cargo, or names the command that installs it.

pub(crate) mod deploy_tools;
pub(crate) mod npm;
pub(crate) mod python;
pub(crate) mod wasm_target;

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command;
use crate::workspace::Workspace;

/// The oldest Node whose test runner the client tests are written for.
const NODE_MAJOR_MIN: u32 = 20;

/// Errors with the command to run when a program is missing and cannot be installed from here.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    node()?;
    redis()?;
    wasm_target::ensure(workspace)?;
    npm::ensure(&workspace.clients())?;
    npm::ensure(&workspace.peers())?;
    deploy_tools::Tools::ensure(workspace).map(drop)
}

fn node() -> Result<()> {
    let advice = format!("install Node.js {NODE_MAJOR_MIN} or later, with npm");
    let version = command::output(Command::new("node").arg("--version")).with_context(|| advice.clone())?;
    if major(&version).is_none_or(|major| major < NODE_MAJOR_MIN) {
        bail!("node is {version}: {advice}");
    }
    if !command::present("npm") {
        bail!("npm is missing: {advice}");
    }
    println!("node {version}");
    Ok(())
}

fn redis() -> Result<()> {
    if !command::present("redis-server") {
        command::apt_install("redis-server")?;
    }
    println!("{}", command::output(Command::new("redis-server").arg("--version"))?);
    Ok(())
}

/// The first number of `v20.1.2`.
fn major(version: &str) -> Option<u32> {
    version.trim_start_matches('v').split('.').next()?.parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_node_version_is_compared_as_a_number() {
        assert_eq!(major("v20.20.2"), Some(20));
        assert_eq!(major("v8.0.0"), Some(8));
        assert_eq!(major("nightly"), None);
    }
}
