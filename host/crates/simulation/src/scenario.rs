//! Scenarios: what a simulated world is like. A file says it in TOML; `tests/scenarios` holds those that ship.
//!
//! ```toml
//! summary = "One line for the operator"
//! [settle]                 # worlds of devices, see [`SettleScenario`]; or [rpc], see [`RpcScenario`]
//! replicas = 2
//! …
//! ```
//! Every number has a bound, and a key that is not known is an error, so that a misspelt one is not just left out. A number
//! that may be drawn is a [`Span`]: `250`, or `[100, 400]`.

mod rpc;
mod settle;
mod shipped;
mod span;

pub use rpc::{Faults, RpcScenario, Steps};
pub use settle::{Clients, Network, Replicas, SettleScenario, StoreTrouble, When};
pub use shipped::SHIPPED;
pub use span::Span;

use serde::Deserialize;

/// The longest file of a scenario, in bytes.
pub const FILE_MAX_BYTES: usize = 64 * 1024;

/// A scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// What it is about, in one line.
    pub summary: String,
    /// Its worlds.
    pub worlds: Worlds,
}

/// The worlds of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Worlds {
    /// Of devices, for the slot `settle`.
    Settle(SettleScenario),
    /// Of callers and daemons, for the slots `target`, `grace` and `presence`.
    Rpc(RpcScenario),
}

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    summary: String,
    settle: Option<SettleScenario>,
    rpc: Option<RpcScenario>,
}

impl Scenario {
    /// Reads a scenario's file and checks it.
    ///
    /// # Errors
    /// See [`ScenarioError`].
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        if text.len() > FILE_MAX_BYTES {
            return Err(ScenarioError::TooLong);
        }
        let File { summary, settle, rpc } =
            toml::from_str(text).map_err(|error| ScenarioError::Malformed(error.to_string().trim_end().to_owned()))?;
        let worlds = match (settle, rpc) {
            (Some(settle), None) => {
                settle.check()?;
                Worlds::Settle(settle)
            }
            (None, Some(rpc)) => {
                rpc.check()?;
                Worlds::Rpc(rpc)
            }
            _ => return Err(ScenarioError::WhichWorlds),
        };
        Ok(Scenario { summary, worlds })
    }

    /// One of those that ship, by its name.
    pub fn shipped(name: &str) -> Option<Result<Scenario, ScenarioError>> {
        SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| Scenario::parse(text))
    }
}

/// A number must be within its bounds.
fn bounded(key: &'static str, span: Span, min: u64, max: u64) -> Result<(), ScenarioError> {
    let is_within = (min..=max).contains(&span.min) && (min..=max).contains(&span.max);
    if is_within { Ok(()) } else { Err(ScenarioError::OutOfBounds { key, min, max }) }
}
