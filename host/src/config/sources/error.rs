//! Why the settings cannot be used.

use std::path::PathBuf;

use figment::error::{Actual, Kind};

/// A setting that prevents the start. Every message names the setting and its layer. No message quotes a text that may be a secret.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The settings file cannot be read.
    #[error("cannot read the settings file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The settings file is not TOML.
    #[error("the settings file {} is not TOML: line {line}: {problem}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What the parser says, without the text that it read.
        problem: String,
    },
    /// There is no such setting.
    #[error("unknown setting `{setting}` ({origin}){}", expectation(.known))]
    Unknown {
        /// The setting, as `section.key`.
        setting: String,
        /// Where it was made.
        origin: String,
        /// What there is in its place; empty when nothing can be said.
        known: Vec<&'static str>,
    },
    /// The setting's value cannot be used.
    #[error("setting `{setting}` {problem} ({origin})")]
    Invalid {
        /// The setting, as `section.key`.
        setting: String,
        /// Where it was made.
        origin: String,
        /// What is wrong with it; continues "the setting ...".
        problem: String,
    },
    /// An assignment without a setting or without a value.
    #[error("`{given}` ({origin}) must be written section.key=value")]
    Assignment {
        /// What was given, up to the `=`.
        given: String,
        /// Where.
        origin: String,
    },
}

impl ConfigError {
    /// Translates an error in the layer from `origin`.
    pub(in crate::config) fn new(error: figment::Error, origin: &str) -> Self {
        let setting = error.path.join(".");
        let origin = origin.to_owned();
        let problem = match error.kind {
            Kind::UnknownField(_, known) => {
                return Self::Unknown { setting, origin, known: known.to_vec() };
            }
            Kind::Message(problem) => problem,
            Kind::InvalidType(actual, expected) | Kind::InvalidValue(actual, expected) => {
                format!("must be {}, not {}", plain(&expected), kind_of(&actual))
            }
            Kind::UnknownVariant(_, known) => format!("must be one of {}", known.join(", ")),
            other => other.to_string(),
        };
        Self::Invalid { setting, origin, problem }
    }
}

fn expectation(known: &[&str]) -> String {
    match known {
        [] => String::new(),
        known => format!("; there are: {}", known.join(", ")),
    }
}

/// serde names the Rust type of a table.
fn plain(expected: &str) -> &str {
    if expected.starts_with("struct ") { "a table" } else { expected }
}

/// The kind of a value. The value itself may be a secret in the wrong place.
fn kind_of(actual: &Actual) -> &'static str {
    match actual {
        Actual::Bool(_) => "a boolean",
        Actual::Unsigned(_) | Actual::Signed(_) | Actual::Float(_) => "a number",
        Actual::Str(_) | Actual::Char(_) => "a text",
        Actual::Seq => "a list",
        Actual::Map => "a table",
        _ => "something else",
    }
}
