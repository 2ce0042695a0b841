//! `[rpc]`: worlds of callers and daemons.

use serde::Deserialize;

use super::{ScenarioError, Span, bounded};

/// Worlds of callers and daemons and of the replicas that they connect to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RpcScenario {
    /// How many steps clients take until everything heals, 1 to 10,000. Default 300.
    #[serde(default = "steps")]
    pub steps: u64,
}

/// What clients do.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steps {}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faults {}

fn steps() -> u64 {
    300
}

impl RpcScenario {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        bounded("rpc.steps", Span::one(self.steps), 1, 10_000)
    }
}
