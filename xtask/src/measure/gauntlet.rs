//! Runs the gauntlet: real replicas behind a real Redis, real clients, and the failures of the field.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::build::policies;
use crate::command;
use crate::install;
use crate::workspace::{Guest, Workspace};

/// The scenarios that the test command plays beside a Node replica. They are quick, and run code that our replicas alone do not.
const WITH_NODE: [&str; 4] = ["steady-state", "broadcast", "mixed-fleet", "pod-kill-mid-rpc"];

#[derive(Args, Default)]
pub(crate) struct Options {
    /// Only these; without any, all.
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<String>,
    /// How many replicas the fleet has; three unless said.
    #[arg(long, value_name = "N")]
    pub(crate) replicas: Option<u8>,
    /// One replica is the field's own server, on Node.
    #[arg(long, conflicts_with = "all_node")]
    pub(crate) with_node: bool,
    /// Every replica is: the figures to compare with.
    #[arg(long)]
    pub(crate) all_node: bool,
    /// Shorter waits, and nothing that takes minutes.
    #[arg(long)]
    pub(crate) short: bool,
    /// How long `soak` lasts; 30 unless said.
    #[arg(long, value_name = "N")]
    pub(crate) minutes: Option<u16>,
    /// What `soak` does to the fleet, and when; it prints the one that it draws otherwise.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u32>,
    /// Writes the figures into this file too.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Builds host and policies if a replica of ours takes part, then plays the scenarios. Errors when a figure exceeds its limit.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    install::run(workspace)?;
    if !options.all_node {
        let guests: Vec<&Guest> = workspace.policies.iter().collect();
        policies::build(workspace, &guests)?;
        policies::build_host(workspace)?;
    }
    play(workspace, options)
}

/// Plays the tests of the old design's bugs, every scenario with shorter waits, and those of [`WITH_NODE`] beside a Node replica.
/// The policies must be built. Errors as [`run`].
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    policies::build_host(workspace)?;
    command::run(
        Command::new("node")
            .args(["--test", "--test-reporter=spec", "four-bugs.test.mjs"])
            .current_dir(workspace.gauntlet())
            .env("POINTWORK_TARGET_DIR", &workspace.target),
    )?;
    play(workspace, &Options { short: true, ..Options::default() })?;
    let scenarios = WITH_NODE.map(String::from).into();
    play(workspace, &Options { short: true, with_node: true, scenarios, ..Options::default() })
}

fn play(workspace: &Workspace, options: &Options) -> Result<()> {
    // In the folder where cargo was called: that is where a file is named from.
    command::run(
        Command::new("node")
            .arg(workspace.gauntlet().join("main.mjs"))
            .args(arguments(options))
            .env("POINTWORK_TARGET_DIR", &workspace.target),
    )
}

/// Gives the options as the program in `tests/gauntlet` takes them.
fn arguments(options: &Options) -> Vec<String> {
    let switches = [("--with-node", options.with_node), ("--all-node", options.all_node), ("--short", options.short)];
    let values = [
        ("--replicas", options.replicas.map(|replicas| replicas.to_string())),
        ("--minutes", options.minutes.map(|minutes| minutes.to_string())),
        ("--seed", options.seed.map(|seed| seed.to_string())),
        ("--json", options.json.as_deref().map(Path::to_string_lossy).map(String::from)),
    ];
    let mut arguments: Vec<String> =
        switches.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name.to_owned()).collect();
    arguments.extend(values.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?))));
    arguments.extend(options.scenarios.iter().cloned());
    arguments
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_passed_on() {
        assert_eq!(arguments(&Options::default()), Vec::<String>::new());
        let options = Options {
            scenarios: vec!["broadcast".into(), "hung-pod".into()],
            replicas: Some(5),
            with_node: true,
            all_node: false,
            short: true,
            minutes: Some(8),
            seed: Some(7),
            json: Some("figures.json".into()),
        };
        let switches = ["--with-node", "--short"];
        let values = ["--replicas=5", "--minutes=8", "--seed=7", "--json=figures.json"];
        let expected: Vec<&str> = switches.into_iter().chain(values).chain(["broadcast", "hung-pod"]).collect();
        assert_eq!(arguments(&options), expected);
    }
}
