//! Reads the rules from `xtask/structure.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::finding::{Finding, Rule};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rules {
    pub(super) bounds: Bounds,
    /// Folders whose files are no sources.
    #[serde(default)]
    pub(super) data: Vec<PathBuf>,
    /// Folder of a crate, or a pattern -> folders of the crates that it may depend on.
    #[serde(default)]
    pub(super) crates: BTreeMap<String, Vec<String>>,
    /// Folder -> room -> the rooms that it may know.
    #[serde(default)]
    pub(super) rooms: BTreeMap<PathBuf, BTreeMap<String, Vec<String>>>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// The greatest numbers that are allowed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bounds {
    pub(super) siblings: usize,
    pub(super) floors: usize,
    pub(super) file_lines: usize,
    pub(super) function_lines: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    rule: Rule,
    at: String,
    reason: String,
}

impl Rules {
    /// Errors when the file is missing, or is not as described here.
    pub(super) fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read the rules in {}", file.display()))?;
        toml::from_str(&text).with_context(|| format!("{}", file.display()))
    }

    /// The crates that the crate in this folder may depend on; `None` when no row is for it. A row with the exact name comes
    /// before patterns.
    pub(super) fn dependencies(&self, folder: &str) -> Option<&[String]> {
        let pattern = || self.crates.iter().find(|(pattern, _)| matches(pattern, folder)).map(|(_, known)| known);
        self.crates.get(folder).or_else(pattern).map(Vec::as_slice)
    }

    /// Removes the findings that are excepted, and adds one for each exception without a finding.
    pub(super) fn without_exceptions(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        for exception in &self.exceptions {
            let before = findings.len();
            findings.retain(|finding| finding.rule != exception.rule || finding.at != exception.at);
            if findings.len() == before {
                let text =
                    format!("nothing breaks this rule here any more: remove the exception ({})", exception.reason);
                findings.push(Finding::new(Rule::Exceptions, &exception.at, text));
            }
        }
        findings.sort();
        findings
    }
}

/// Whether `name` is what `pattern` says, whose last part may be `*`.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.strip_prefix(start).is_some_and(|rest| !rest.is_empty() && !rest.contains('/')),
        None => pattern == name,
    }
}
