//! The names of the four slots.

use super::bounds::CONTRACT_VERSION;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The name of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotName {
    /// Which daemon gets the call.
    Target,
    /// How long a call waits for a daemon.
    Grace,
    /// Whether a call in flight is given up.
    Presence,
    /// Which socket holds a device's session.
    Settle,
}

impl SlotName {
    /// All slots.
    pub const ALL: [Self; 4] = [Self::Target, Self::Grace, Self::Presence, Self::Settle];

    /// The name in settings, metrics and the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Grace => "grace",
            Self::Presence => "presence",
            Self::Settle => "settle",
        }
    }

    /// The interface that a policy for this slot exports.
    pub(crate) fn interface(self) -> String {
        format!("pointwork:policy/{self}@{CONTRACT_VERSION}")
    }

    /// The world of a policy for this slot, for error messages.
    pub(crate) fn world(self) -> String {
        format!("a {self}-policy of pointwork:policy@{CONTRACT_VERSION}")
    }
}

/// A text that names no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one of target, grace, presence, settle")]
pub struct NoSlot;

impl FromStr for SlotName {
    type Err = NoSlot;

    fn from_str(text: &str) -> Result<Self, NoSlot> {
        Self::ALL.into_iter().find(|slot| slot.as_str() == text).ok_or(NoSlot)
    }
}

impl fmt::Display for SlotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
