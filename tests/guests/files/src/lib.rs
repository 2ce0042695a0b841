//! Counts its decisions in a file.

use std::fs;

use pointwork_policy_sdk::target::{Candidate, Choice, Target};
use pointwork_policy_sdk::{Call, Moment, NoConfig, PolicyError};

/// The policy.
pub struct Files;

impl Target for Files {
    type Config = NoConfig;

    fn configure(_: NoConfig) -> Result<Self, String> {
        Ok(Self)
    }

    fn choose(&self, _: &Moment, _: &Call, _: &[Candidate]) -> Result<Choice, PolicyError> {
        let failed = |error: std::io::Error| PolicyError::Internal(error.to_string());
        let mut decisions = fs::read("decisions").map_err(failed)?;
        decisions.push(b'.');
        fs::write("decisions", &decisions).map_err(failed)?;
        Ok(Choice::Pick(0))
    }
}

pointwork_policy_sdk::export_target!(Files);
