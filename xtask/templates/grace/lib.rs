//! {{name}}: how long a call waits for its daemon. Say here what the rule does, and where it is the wrong one.
//!
//! It starts as the native rule: every call waits the same time.

use pointwork_policy_sdk::grace::{Absence, Grace};
use pointwork_policy_sdk::{Call, Moment, PolicyError, check_span};
use serde::Deserialize;

/// What the operator may set.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How long a call is held, in milliseconds; 0 fails every call at once.
    pub grace_ms: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { grace_ms: 10_000 }
    }
}

/// The rule.
pub struct Rule(Config);

impl Grace for Rule {
    type Config = Config;

    fn configure(config: Config) -> Result<Self, String> {
        check_span("grace_ms", config.grace_ms)?;
        Ok(Self(config))
    }

    fn wait(&self, _: &Moment, _: &Call, _: &Absence) -> Result<u32, PolicyError> {
        Ok(self.0.grace_ms)
    }
}

pointwork_policy_sdk::export_grace!(Rule);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use pointwork_policy_sdk::{Departure, parse_config};

    fn wait(config: &str, cause: Departure) -> u32 {
        let at = Moment { now_ms: 0, seed: 0, key: 0 };
        let call = Call { method: "m".into(), params_bytes: 0, waited_ms: 3, left_ms: 30_000, attempt: 0 };
        let absence = Absence { cause, gone_ms: 0, departures: 0, returns_ms: vec![], waiting: 0, replica_age_ms: 0 };
        Rule::configure(parse_config(config).unwrap()).unwrap().wait(&at, &call, &absence).unwrap()
    }

    #[test]
    fn every_call_waits_as_configured() {
        for cause in [Departure::NeverSeen, Departure::Closed, Departure::ReplicaSilent] {
            assert_eq!(wait("{}", cause), 10_000);
            assert_eq!(wait(r#"{"grace_ms": 250}"#, cause), 250);
        }
    }

    #[test]
    fn a_setting_that_it_does_not_know_is_refused() {
        assert!(parse_config::<Config>(r#"{"grace": 1}"#).is_err());
    }
}
