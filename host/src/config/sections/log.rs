//! `[log]`: what is written to standard error, and how.

use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

/// Form and amount of the log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    /// For people or for machines.
    pub format: LogFormat,
    /// What is logged.
    pub filter: LogFilter,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One readable line per event.
    #[default]
    Human,
    /// One JSON object per event.
    Json,
}

/// A level (`info`) or directives such as `info,pointwork=debug`, known to be well-formed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct LogFilter(String);

impl LogFilter {
    /// The directives as they were written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for LogFilter {
    fn default() -> Self {
        // The client library of Redis logs every broken connection. The adapter already logs it once.
        Self("info,fred=error".to_owned())
    }
}

impl TryFrom<String> for LogFilter {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match EnvFilter::builder().parse(&text) {
            Ok(_) if text.trim().is_empty() => Err("must not be empty".to_owned()),
            Ok(_) => Ok(Self(text)),
            Err(error) => {
                Err(format!("must be a level or directives such as info,pointwork=debug, not `{text}` ({error})"))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn rejects_a_filter_that_cannot_be_parsed() {
        let filter = |text: &str| serde_json::from_value::<LogFilter>(text.into());
        assert_eq!(filter("info,pointwork=debug").unwrap().as_str(), "info,pointwork=debug");
        for wrong in ["", " ", "info,pointwork=loud", "[[["] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
    }
}
