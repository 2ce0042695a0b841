//! Reads the crates of a tree from their manifests, and checks which depends on which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::finding::{Finding, Rule};
use super::rules::{Rules, matches};
use super::tree::{Tree, shown};

/// A package.
pub(super) struct Crate {
    pub(super) folder: PathBuf,
    /// As code names its library.
    pub(super) library: String,
    /// The library's file, if it has one.
    pub(super) root: Option<PathBuf>,
    /// The files of programs, examples and benches.
    pub(super) programs: Vec<PathBuf>,
    /// Names of packages, in this tree or not; without those for tests.
    dependencies: BTreeSet<String>,
    package: String,
}

/// Errors when a manifest is not TOML.
pub(super) fn read(tree: &Tree) -> Result<Vec<Crate>> {
    let mut crates = Vec::new();
    for (path, text) in &tree.manifests {
        let manifest: Table = text.parse().with_context(|| format!("{}", path.display()))?;
        if let Some(name) = manifest.get("package").and_then(|package| package.get("name")?.as_str()) {
            crates.push(Crate::new(tree, path.parent().unwrap_or(Path::new("")), name, &manifest));
        }
    }
    Ok(crates)
}

impl Crate {
    fn new(tree: &Tree, folder: &Path, package: &str, manifest: &Table) -> Self {
        let library = manifest.get("lib");
        let named = library.and_then(|library| library.get("name")?.as_str()).unwrap_or(package).replace('-', "_");
        let at = library.and_then(|library| library.get("path")?.as_str()).unwrap_or("src/lib.rs");
        let root = folder.join(at);
        let mut programs: BTreeSet<PathBuf> =
            tree.sources.keys().filter(|path| path.strip_prefix(folder).is_ok_and(is_program)).cloned().collect();
        for kind in ["bin", "example", "bench"] {
            let targets = manifest.get(kind).and_then(Value::as_array).into_iter().flatten();
            programs.extend(targets.filter_map(|target| Some(folder.join(target.get("path")?.as_str()?))));
        }
        Self {
            folder: folder.to_owned(),
            library: named,
            root: tree.sources.contains_key(&root).then_some(root),
            programs: programs.into_iter().filter(|path| tree.sources.contains_key(path)).collect(),
            dependencies: dependencies(manifest),
            package: package.to_owned(),
        }
    }
}

/// Whether cargo finds a target here by itself.
fn is_program(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["src", "main.rs"] => true,
        ["src", "bin", file] | ["examples" | "benches", file] => file.ends_with(".rs"),
        ["src", "bin", _, file] | ["examples" | "benches", _, file] => *file == "main.rs",
        _ => false,
    }
}

/// Of the crate and of its build script, for all targets.
fn dependencies(manifest: &Table) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let tables = targets.filter_map(|(_, target)| target.as_table()).chain([manifest]);
    let tables = tables.flat_map(|table| ["dependencies", "build-dependencies"].map(|kind| table.get(kind)));
    let named = tables.flatten().filter_map(Value::as_table).flatten();
    named.map(|(name, value)| value.get("package").and_then(Value::as_str).unwrap_or(name).to_owned()).collect()
}

/// Dependencies within the tree that the table of crates does not allow.
pub(super) fn check(crates: &[Crate], rules: &Rules) -> Vec<Finding> {
    let folders: BTreeMap<&str, String> =
        crates.iter().map(|package| (package.package.as_str(), shown(&package.folder))).collect();
    let mut findings = Vec::new();
    for package in crates {
        let at = shown(&package.folder);
        let Some(allowed) = rules.dependencies(&at) else {
            findings.push(Finding::new(Rule::Crates, at, "is not in the table of crates: add it"));
            continue;
        };
        let known = package.dependencies.iter().filter_map(|name| folders.get(name.as_str()));
        for known in known.filter(|known| !allowed.iter().any(|pattern| matches(pattern, known))) {
            let text = format!("may not depend on {known}: remove the dependency from {at}/Cargo.toml");
            findings.push(Finding::new(Rule::Crates, &at, text));
        }
    }
    findings
}
