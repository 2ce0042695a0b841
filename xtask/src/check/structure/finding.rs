//! Describes one broken rule in one line.

use std::fmt;

use serde::Deserialize;

/// The rules, as exceptions name them.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub(super) enum Rule {
    /// A file that cannot be parsed.
    Syntax,
    FileLines,
    FunctionLines,
    Siblings,
    Floors,
    Circle,
    Rooms,
    Crates,
    /// An exception that excepts nothing.
    Exceptions,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    /// The file or folder, relative to the root.
    pub(super) at: String,
    pub(super) rule: Rule,
    /// What is wrong, the bound, and what to do.
    pub(super) text: String,
}

impl Finding {
    pub(super) fn new(rule: Rule, at: impl Into<String>, text: impl Into<String>) -> Self {
        Self { at: at.into(), rule, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {:?}: {}", self.at, self.rule, self.text)
    }
}
