//! Checks the layout of the sources: sizes of files, functions and folders, circles and depth of imports, and who may know whom.
//!
//! The rules are data, in `xtask/structure.toml`. Rust files are parsed by `syn`; an import is an arrow to the file that
//! defines what is imported, through any number of re-exports. Code for tests has a size and no arrows.

mod arrows;
mod finding;
mod manifests;
mod modules;
mod paths;
mod rooms;
mod rules;
mod scripts;
mod sizes;
mod summary;
mod tree;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use finding::Finding;
use rooms::Folders;
use rules::Rules;
use tree::Tree;

#[derive(Args, Default)]
pub(crate) struct Options {
    /// The tree to check, in a Git repository; this workspace unless given.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// The rules; `xtask/structure.toml` of the tree unless given.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Prints the rooms of this folder, floor by floor, and whom each of them knows; checks nothing.
    #[arg(long, value_name = "FOLDER")]
    show: Option<PathBuf>,
}

/// What a check found.
struct Report {
    findings: Vec<Finding>,
    /// One line for each crate.
    summary: Vec<String>,
    folders: Folders,
}

/// Checks and prints. Errors when a rule is broken, or when a file cannot be read.
pub(crate) fn run(options: &Options, here: impl FnOnce() -> Result<PathBuf>) -> Result<()> {
    let root = options.root.clone().map_or_else(here, Ok)?;
    let rules = options.rules.clone().unwrap_or_else(|| root.join("xtask/structure.toml"));
    let report = check(&root, &rules)?;
    if let Some(folder) = &options.show {
        report.folders.show(folder).iter().for_each(|line| println!("{line}"));
        return Ok(());
    }
    for finding in &report.findings {
        println!("{finding}");
    }
    if !report.findings.is_empty() {
        bail!("{} findings against {}", report.findings.len(), rules.display());
    }
    report.summary.iter().for_each(|line| println!("{line}"));
    Ok(())
}

fn check(root: &Path, rules: &Path) -> Result<Report> {
    let rules = Rules::read(rules)?;
    let tree = Tree::read(root, &rules.data)?;
    let crates = manifests::read(&tree)?;
    let mut arrows = modules::arrows(&tree, &crates);
    arrows.extend(scripts::arrows(&tree));
    let folders = Folders::new(&tree, &arrows);

    let mut findings = sizes::check(&tree, &rules.bounds);
    findings.extend(arrows::circles(&arrows));
    findings.extend(folders.check(&rules));
    findings.extend(manifests::check(&crates, &rules));
    let findings = rules.without_exceptions(findings);
    let summary = summary::lines(&tree, &crates, &folders);
    Ok(Report { findings, summary, folders })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;
