//! {{name}}: whether a call in flight is given up when its daemon is gone. Say here what the rule does, and where it is the wrong one.
//!
//! It starts as the native rule: given up on proof of absence, held while that is only suspected, and while a daemon that can
//! hand in its result has time to come back.

use pointwork_policy_sdk::presence::{Doubt, Presence, Verdict};
use pointwork_policy_sdk::{Call, Departure, Moment, PolicyError, check_span};
use serde::Deserialize;

/// What the operator may set.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How soon to look again at a call that is held, in milliseconds.
    pub recheck_ms: u32,
    /// How long a daemon that can hand in its result may be away, in milliseconds.
    pub resume_ms: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { recheck_ms: 1_000, resume_ms: 10_000 }
    }
}

/// The rule.
pub struct Rule(Config);

impl Presence for Rule {
    type Config = Config;

    fn configure(config: Config) -> Result<Self, String> {
        check_span("recheck_ms", config.recheck_ms)?;
        check_span("resume_ms", config.resume_ms)?;
        Ok(Self(config))
    }

    fn judge(&self, _: &Moment, _: &Call, doubt: &Doubt) -> Result<Verdict, PolicyError> {
        let may_hand_in = doubt.resumable && (doubt.returned || doubt.since_ms < self.0.resume_ms);
        Ok(match doubt.cause {
            Departure::ReplicaSilent => Verdict::Hold(self.0.recheck_ms),
            Departure::TransportLost | Departure::ReplicaLost | Departure::Drained if may_hand_in => {
                Verdict::Hold(self.0.recheck_ms)
            }
            _ => Verdict::Abort,
        })
    }
}

pointwork_policy_sdk::export_presence!(Rule);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use pointwork_policy_sdk::parse_config;

    fn judge(cause: Departure, resumable: bool, since_ms: u32) -> Verdict {
        let at = Moment { now_ms: 0, seed: 0, key: 0 };
        let call = Call { method: "m".into(), params_bytes: 0, waited_ms: 50, left_ms: 29_950, attempt: 0 };
        let returned = false;
        let doubt = Doubt { cause, since_ms, sent_ms: 50, resumable, returned, departures: 1, returns_ms: vec![] };
        Rule::configure(parse_config("{}").unwrap()).unwrap().judge(&at, &call, &doubt).unwrap()
    }

    #[test]
    fn a_call_is_given_up_on_proof_only() {
        assert_eq!(judge(Departure::ReplicaSilent, false, 0), Verdict::Hold(1_000));
        assert_eq!(judge(Departure::TransportLost, false, 0), Verdict::Abort);
    }

    #[test]
    fn a_daemon_that_can_hand_in_its_result_has_time_to_come_back() {
        assert_eq!(judge(Departure::TransportLost, true, 9_999), Verdict::Hold(1_000));
        assert_eq!(judge(Departure::TransportLost, true, 10_000), Verdict::Abort);
        assert_eq!(judge(Departure::Closed, true, 0), Verdict::Abort);
    }

    #[test]
    fn a_setting_that_it_does_not_know_is_refused() {
        assert!(parse_config::<Config>(r#"{"recheck": 1}"#).is_err());
    }
}
