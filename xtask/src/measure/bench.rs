//! Runs the benches: Pointwork beside the field's Node server, the decisions of policies, ten thousand idle sockets, and a fleet
//! of devices that comes back after a restart. The host is optimised as in a release.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::build::policies;
use crate::command;
use crate::install;
use crate::workspace::Workspace;

/// The bench that runs when none is named.
const DEFAULT: &str = "ratio";
const BENCHES: [&str; 4] = [DEFAULT, "decision", "devices", "idle"];
/// The packages on the path of a call that the profile `dev` does not optimise fully. To build these four takes a few minutes; a
/// release build of everything, with wasmtime and its compiler, takes a quarter of an hour.
const MEASURED: [&str; 4] = ["pointwork", "pointwork-core", "pointwork-policy", "socketioxide-redis-streams"];
/// Their settings, as in a release.
const SETTINGS: [&str; 4] = ["opt-level=3", "debug-assertions=false", "overflow-checks=false", "codegen-units=16"];
/// How the page describes that build.
const PROFILE: &str =
    "the profile dev, but host, core, policy engine and adapter at opt-level 3 and without assertions";
const RELEASE_PROFILE: &str = "the profile release";
/// Where the table of a whole run is written.
const PAGE: &str = "docs/performance.md";

#[derive(Args)]
pub(crate) struct Options {
    /// Measures the build that operators run, the first of which takes a quarter of an hour.
    #[arg(long)]
    release: bool,
    /// One of ratio (without a name), decision, devices, idle, or `all`; then what is for it, such as `--rounds 3 --only cross`.
    /// Anything else is a filter of cargo bench's.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "BENCH [ARGUMENTS]")]
    arguments: Vec<String>,
}

/// The bench to run, and its arguments.
#[derive(Debug, PartialEq, Eq)]
struct Plan<'a> {
    /// `None` for all.
    bench: Option<&'a str>,
    arguments: &'a [String],
}

/// Builds the policies and the host that are measured, then measures. Errors when any of it fails.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let plan = plan(&options.arguments);
    policies::build_all(workspace)?;
    let (mut build, program, profile) = match options.release {
        true => (workspace.cargo(["build", "--release", "-p", "pointwork"]), "release/pointwork", RELEASE_PROFILE),
        false => (host(workspace), "debug/pointwork", PROFILE),
    };
    command::run(&mut build)?;
    let mut bench = natively(workspace, "bench");
    bench.env("POINTWORK_BIN", workspace.target.join(program)).arg("--profile=dev");
    match plan.bench {
        Some(name) => bench.args(["--bench", name]),
        None => bench.args(BENCHES.iter().flat_map(|name| ["--bench", name])),
    };
    bench.arg("--").args(plan.arguments);
    if plan.bench == Some(DEFAULT) {
        install::run(workspace)?;
        bench.args(["--profile", profile]);
        bench.arg("--write").arg(workspace.root.join(PAGE));
    }
    command::run(&mut bench)
}

fn plan(arguments: &[String]) -> Plan<'_> {
    let all = Plan { bench: None, arguments };
    match arguments {
        [] => Plan { bench: Some(DEFAULT), arguments },
        [first, ..] if first.starts_with('-') => Plan { bench: Some(DEFAULT), arguments },
        [first, rest @ ..] if first == "all" => Plan { bench: None, arguments: rest },
        [first, rest @ ..] => {
            let named = BENCHES.iter().find(|name| *name == first);
            named.map_or(all, |name| Plan { bench: Some(name), arguments: rest })
        }
    }
}

/// Builds the host that is measured. The programs that measure it are built separately, as the tests are.
fn host(workspace: &Workspace) -> Command {
    let mut build = natively(workspace, "build");
    for package in MEASURED {
        build.args(SETTINGS.iter().map(|setting| format!("--config=profile.dev.package.{package}.{setting}")));
    }
    build
}

/// Selects all native packages, so that their dependencies have the same features as in the tests.
fn natively(workspace: &Workspace, what: &str) -> Command {
    let mut command = workspace.cargo([what]);
    for package in &workspace.native {
        command.args(["-p", package]);
    }
    command
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn planned(arguments: &[&str]) -> (Option<String>, Vec<String>) {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let plan = plan(&arguments);
        (plan.bench.map(str::to_owned), plan.arguments.to_vec())
    }

    #[test]
    fn a_bench_is_named_first_and_the_ratios_are_meant_without_a_name() {
        let ratio = || Some(DEFAULT.to_owned());
        assert_eq!(planned(&[]), (ratio(), vec![]));
        assert_eq!(planned(&["--rounds", "3"]), (ratio(), vec!["--rounds".to_owned(), "3".to_owned()]));
        assert_eq!(planned(&["ratio", "--smoke"]), (ratio(), vec!["--smoke".to_owned()]));
        assert_eq!(planned(&["devices"]), (Some("devices".to_owned()), vec![]));
        assert_eq!(planned(&["all", "--quick"]), (None, vec!["--quick".to_owned()]));
        assert_eq!(planned(&["target/nop"]), (None, vec!["target/nop".to_owned()]));
    }
}
