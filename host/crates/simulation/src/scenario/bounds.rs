//! Checks that the numbers of a scenario are within their bounds.

use super::span::Span;

/// The longest file of a scenario, in bytes.
pub const FILE_MAX_BYTES: usize = 64 * 1024;

/// Why a scenario cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The file is longer than [`FILE_MAX_BYTES`].
    #[error("is longer than {FILE_MAX_BYTES} bytes")]
    TooLong,
    /// It is no TOML, or has a key that is not known, or lacks one; with the line.
    #[error("{0}")]
    Malformed(String),
    /// It has neither `[settle]` nor `[rpc]`, or both.
    #[error("must have one of [settle] and [rpc]")]
    WhichWorlds,
    /// A number is out of its bounds.
    #[error("{key}: must be from {min} to {max}")]
    OutOfBounds {
        /// The key, with its table's.
        key: &'static str,
        /// The least that it may be.
        min: u64,
        /// The greatest that it may be.
        max: u64,
    },
    /// Two numbers do not go together.
    #[error("{0}")]
    Contradiction(&'static str),
}

/// A number must be within its bounds.
pub(super) fn bounded(key: &'static str, span: Span, min: u64, max: u64) -> Result<(), ScenarioError> {
    let is_within = (min..=max).contains(&span.min) && (min..=max).contains(&span.max);
    if is_within { Ok(()) } else { Err(ScenarioError::OutOfBounds { key, min, max }) }
}
