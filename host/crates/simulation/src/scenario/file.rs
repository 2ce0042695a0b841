//! Reads a scenario from its file and checks it.

use serde::Deserialize;

use super::bounds::{FILE_MAX_BYTES, ScenarioError};
use super::rpc::RpcScenario;
use super::settle::SettleScenario;
use super::shipped::SHIPPED;

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
