//! `[device]`: sessions of devices.

use serde::{Deserialize, Serialize};

use super::bounded::Bounded;

/// How a device's session settles on one socket.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceConfig {
    /// How long a session that was just accepted is held against newcomers, in milliseconds; 0 holds none.
    pub settle_ms: Bounded<0, 3_600_000>,
}

impl Default for DeviceConfig {
    fn default() -> Self {
        Self { settle_ms: Bounded::literal::<2_500>() }
    }
}
