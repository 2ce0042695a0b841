//! A grace policy that cannot do without its configuration: it refuses an empty one.

use pointwork_policy_sdk::grace::{Absence, Grace};
use pointwork_policy_sdk::{Call, Moment, PolicyError};
use serde::Deserialize;

/// The configuration; its default is refused.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How long every call is held, in milliseconds; 1 at the least.
    wait_ms: u32,
}

/// The policy.
pub struct Exacting(Config);

impl Grace for Exacting {
    type Config = Config;

    fn configure(config: Config) -> Result<Self, String> {
        if config.wait_ms == 0 { Err("wait_ms is missing".into()) } else { Ok(Self(config)) }
    }

    fn wait(&self, _: &Moment, _: &Call, _: &Absence) -> Result<u32, PolicyError> {
        Ok(self.0.wait_ms)
    }
}

pointwork_policy_sdk::export_grace!(Exacting);
