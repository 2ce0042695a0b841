//! {{name}}: which daemon gets a call. Say here what the rule does, and where it is the wrong one.
//!
//! It starts as the native rule: the first candidate, which is the one that registered first.

use pointwork_policy_sdk::target::{Candidate, Choice, Target};
use pointwork_policy_sdk::{Call, Moment, PolicyError};
use serde::Deserialize;

/// What the operator may set: nothing yet.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

/// The rule.
pub struct Rule;

impl Target for Rule {
    type Config = Config;

    fn configure(_: Config) -> Result<Self, String> {
        Ok(Self)
    }

    fn choose(&self, _: &Moment, _: &Call, candidates: &[Candidate]) -> Result<Choice, PolicyError> {
        Ok(if candidates.is_empty() { Choice::Reject } else { Choice::Pick(0) })
    }
}

pointwork_policy_sdk::export_target!(Rule);

#[cfg(test)]
mod tests {
    use super::*;
    use pointwork_policy_sdk::{parse_config, target::Traits};

    #[test]
    fn the_first_that_registered_gets_the_call() {
        let at = Moment { now_ms: 0, seed: 7, key: 7 };
        let call = Call { method: "m".into(), params_bytes: 0, waited_ms: 0, left_ms: 30_000, attempt: 0 };
        let candidate = Candidate {
            replica: 0,
            registered_ms: 0,
            idle_ms: 0,
            in_flight: 0,
            answer_us: 0,
            unanswered: 0,
            traits: Traits::LOCAL,
        };
        assert_eq!(Rule.choose(&at, &call, &[candidate, candidate]), Ok(Choice::Pick(0)));
        assert_eq!(Rule.choose(&at, &call, &[]), Ok(Choice::Reject));
    }

    #[test]
    fn a_setting_that_it_does_not_know_is_refused() {
        assert!(parse_config::<Config>(r#"{"unknown": 1}"#).is_err());
    }
}
