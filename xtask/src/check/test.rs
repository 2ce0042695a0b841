//! Runs all checks, those first whose failure is cheapest to find.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use walkdir::{DirEntry, WalkDir};

use super::{dependencies, deploy, peers, structure};
use crate::build::policies;
use crate::command;
use crate::install;
use crate::measure::gauntlet;
use crate::workspace::Workspace;

#[derive(Args)]
pub(crate) struct Options {
    /// Only this step; what it needs from earlier ones must be there.
    #[arg(long, value_name = "STEP")]
    only: Option<Step>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Step {
    /// Node, redis-server, the wasm target, the packages of npm and pip.
    Prerequisites,
    /// `cargo fmt --check`
    Fmt,
    /// `cargo xtask check structure`
    Structure,
    /// Clippy: warnings are errors.
    Clippy,
    /// Rustdoc: warnings are errors.
    Doc,
    /// Licences, sources, withdrawn versions and advisories of the dependencies.
    Deny,
    /// Builds the policies and the hostile guests, and checks the policies.
    Policies,
    /// Image, manifests, unit and alerts of `deploy/`, by the programs that read such files.
    Deploy,
    /// `cargo test`
    Rust,
    /// Node's own adapter, on a real Redis.
    Peers,
    /// The unmodified Node clients.
    Clients,
    /// Replicas behind a Redis and everything that goes wrong, in a few minutes.
    Gauntlet,
}

/// Errors at the first step that fails.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    for step in Step::value_variants() {
        if options.only.is_some_and(|only| only != *step) {
            continue;
        }
        let name = step.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        println!("\n== {name}");
        let started = Instant::now();
        step.run(workspace).with_context(|| format!("step {name}"))?;
        println!("== {name}: {:.1} s", started.elapsed().as_secs_f64());
    }
    Ok(())
}

impl Step {
    fn run(self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Prerequisites => install::run(workspace),
            Self::Fmt => command::run(&mut workspace.cargo(["fmt", "--all", "--check"])),
            Self::Structure => structure::run(&structure::Options::default(), || Ok(workspace.root.clone())),
            Self::Clippy => clippy(workspace),
            Self::Doc => doc(workspace),
            Self::Deny => dependencies::run(workspace),
            Self::Policies => policies::run(workspace),
            Self::Deploy => deploy::run(workspace),
            Self::Rust => rust(workspace),
            Self::Peers => peers::run(workspace),
            Self::Clients => clients(workspace),
            Self::Gauntlet => gauntlet::test(workspace),
        }
    }
}

/// Checks guests twice: as components, and natively with their unit tests.
fn clippy(workspace: &Workspace) -> Result<()> {
    for packages in sides(workspace) {
        command::run(select(&mut workspace.cargo(["clippy", "--all-targets"]), packages).args(["--", "-Dwarnings"]))?;
    }
    let mut components = workspace.cargo(["clippy", "--target=wasm32-wasip2"]);
    command::run(select(&mut components, &workspace.wasm).args(["--", "-Dwarnings"]))
}

fn doc(workspace: &Workspace) -> Result<()> {
    for packages in sides(workspace) {
        let mut doc = workspace.cargo(["doc", "--no-deps"]);
        command::run(select(&mut doc, packages).env("RUSTDOCFLAGS", "-Dwarnings"))?;
    }
    Ok(())
}

fn rust(workspace: &Workspace) -> Result<()> {
    for packages in sides(workspace) {
        command::run(select(&mut workspace.cargo(["test"]), packages))?;
    }
    Ok(())
}

/// The native and the wasm packages. One command must not build both: cargo would unite the features of their common dependencies,
/// and compile wasmtime once more than `cargo build -p pointwork` did.
fn sides(workspace: &Workspace) -> [&[String]; 2] {
    [&workspace.native, &workspace.wasm]
}

fn select<'a>(command: &'a mut Command, packages: &[String]) -> &'a mut Command {
    command.args(packages.iter().flat_map(|package| ["-p", package]))
}

fn clients(workspace: &Workspace) -> Result<()> {
    policies::build_host(workspace)?;
    let folder = workspace.clients();
    let entries = WalkDir::new(&folder).sort_by_file_name().into_iter();
    let entries = entries.filter_entry(|entry| entry.file_name() != "node_modules");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.map(DirEntry::into_path)).collect::<Result<_, _>>()?;
    files.retain(|file| file.to_string_lossy().ends_with(".test.mjs"));
    if files.is_empty() {
        // Without a file node would look for tests by itself, find none, and be content.
        bail!("{} holds no *.test.mjs", folder.display());
    }
    command::run(
        Command::new("node")
            // One file, and so one host, at a time: the load that a test makes is its own.
            .args(["--test", "--test-concurrency=1", "--test-reporter=spec"])
            .args(files)
            .current_dir(&folder)
            .env("POINTWORK_TARGET_DIR", &workspace.target),
    )
}
