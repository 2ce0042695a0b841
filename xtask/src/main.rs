//! `cargo xtask`: builds, runs, checks and measures this workspace.

// A command line program prints to the terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod build;
mod check;
mod command;
mod install;
mod measure;
mod run;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use build::{new_policy, policies};
use check::{Check, test};
use measure::{bench, gauntlet, sim};
use run::{demo, up};
use workspace::Workspace;

/// Builds, runs and tests Pointwork.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Builds policies and host, serves, and swaps a policy in when its source changes.
    Up(up::Options),
    /// Two daemons and a caller against the host that `up` runs: prints who answers.
    Demo,
    /// Builds every policy, checks it, and prints name, slot, version, size and imports; or builds those that are named.
    Policies(policies::Options),
    /// Writes a policy that builds, passes and swaps in at once, for its author to change.
    NewPolicy(new_policy::Options),
    /// Runs every check there is, in order, and stops at the first that fails.
    Test(test::Options),
    /// Runs one check by itself.
    #[command(subcommand)]
    Check(Check),
    /// Replicas behind a Redis, real clients, and everything that goes wrong: prints the seed's figures beside ours.
    Gauntlet(gauntlet::Options),
    /// Simulated clusters of the real machines, from a seed: tells what happens, or sweeps over many.
    Sim(sim::Options),
    /// Runs the benches.
    Bench(bench::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<()> {
    let workspace = Workspace::load;
    match task {
        Task::Up(options) => up::run(&workspace()?, &options),
        Task::Demo => demo::run(&workspace()?),
        Task::Policies(options) => policies::run_for(&workspace()?, &options),
        Task::NewPolicy(options) => new_policy::run(&workspace()?, &options),
        Task::Test(options) => test::run(&workspace()?, &options),
        Task::Check(check) => check.run(),
        Task::Gauntlet(options) => gauntlet::run(&workspace()?, &options),
        Task::Sim(options) => sim::run(&workspace()?, &options),
        Task::Bench(options) => bench::run(&workspace()?, &options),
    }
}
