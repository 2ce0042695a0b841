//! Lists the sources of a tree, as Git sees it, and parses those in Rust.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;

/// A source file.
pub(super) struct Source {
    pub(super) text: String,
    /// `None` for a script, and for Rust that does not parse.
    pub(super) syntax: Option<syn::File>,
    /// Why it does not parse.
    pub(super) error: Option<String>,
}

/// The files of a tree that count, by their paths relative to its root.
pub(super) struct Tree {
    pub(super) sources: BTreeMap<PathBuf, Source>,
    /// The text of each `Cargo.toml`.
    pub(super) manifests: BTreeMap<PathBuf, String>,
}

impl Tree {
    /// Files that Git tracks, and those that it does not ignore, without the folders of data. Errors when Git does.
    pub(super) fn read(root: &Path, data: &[PathBuf]) -> Result<Self> {
        let mut list = Command::new("git");
        list.arg("-C").arg(root).args(["ls-files", "--cached", "--others", "--exclude-standard"]);
        let mut tree = Self { sources: BTreeMap::new(), manifests: BTreeMap::new() };
        for path in command::output(&mut list)?.lines().map(PathBuf::from) {
            let file = root.join(&path);
            // Git lists what was removed since the last commit, too.
            if !file.is_file() || data.iter().any(|folder| path.starts_with(folder)) {
                continue;
            }
            let text = || fs::read_to_string(&file).with_context(|| format!("{}", file.display()));
            if path.ends_with("Cargo.toml") {
                tree.manifests.insert(path, text()?);
            } else if is_source(&path) {
                tree.sources.insert(path.clone(), Source::new(&path, text()?));
            }
        }
        Ok(tree)
    }
}

impl Source {
    fn new(path: &Path, text: String) -> Self {
        if !is_rust(path) {
            return Self { text, syntax: None, error: None };
        }
        match syn::parse_file(&text) {
            Ok(syntax) => Self { text, syntax: Some(syntax), error: None },
            Err(error) => Self { text, syntax: None, error: Some(error.to_string()) },
        }
    }
}

/// Whether it is written in Rust.
pub(super) fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "rs")
}

fn is_source(path: &Path) -> bool {
    is_rust(path) || path.extension().is_some_and(|kind| kind == "mjs" || kind == "ts")
}

/// A path as it is printed.
pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A path without `.` and `..`.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}
