//! A call in flight is given up as soon as its daemon is proven gone, and held while that is only suspected.
//!
//! The native default of the `presence` slot. A replica that is merely not heard from proves nothing: its daemon may be
//! at work and answer yet. If your daemons can hand in a result after a reconnect, `presence-tolerant` keeps
//! their calls alive through it.

use pointwork_policy_sdk::presence::{Doubt, Presence, Verdict};
use pointwork_policy_sdk::{Call, Departure, Moment, PolicyError, check_span};
use serde::Deserialize;

/// What the operator may set.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How soon to look again while a replica is silent, in milliseconds; the host looks no more often than every 10.
    pub recheck_ms: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { recheck_ms: 1_000 }
    }
}

/// The rule.
pub struct Seed(Config);

impl Presence for Seed {
    type Config = Config;

    fn configure(config: Config) -> Result<Self, String> {
        check_span("recheck_ms", config.recheck_ms)?;
        Ok(Self(config))
    }

    fn judge(&self, _: &Moment, _: &Call, doubt: &Doubt) -> Result<Verdict, PolicyError> {
        Ok(match doubt.cause {
            Departure::ReplicaSilent => Verdict::Hold(self.0.recheck_ms),
            Departure::NeverSeen
            | Departure::Closed
            | Departure::Unregistered
            | Departure::TransportLost
            | Departure::ReplicaLost
            | Departure::Drained
            | Departure::Evicted => Verdict::Abort,
        })
    }
}

pointwork_policy_sdk::export_presence!(Seed);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use pointwork_policy_sdk::parse_config;

    fn judge(config: &str, cause: Departure) -> Verdict {
        let at = Moment { now_ms: 0, seed: 0, key: 0 };
        let call = Call { method: "m".into(), params_bytes: 0, waited_ms: 50, left_ms: 29_950, attempt: 0 };
        let doubt = Doubt {
            cause,
            since_ms: 0,
            sent_ms: 50,
            resumable: true,
            returned: true,
            departures: 1,
            returns_ms: vec![100],
        };
        Seed::configure(parse_config(config).unwrap()).unwrap().judge(&at, &call, &doubt).unwrap()
    }

    #[test]
    fn only_proof_of_absence_aborts() {
        for proof in [
            Departure::NeverSeen,
            Departure::Closed,
            Departure::Unregistered,
            Departure::TransportLost,
            Departure::ReplicaLost,
            Departure::Drained,
            Departure::Evicted,
        ] {
            assert_eq!(judge("{}", proof), Verdict::Abort, "{proof:?}");
        }
        assert_eq!(judge("{}", Departure::ReplicaSilent), Verdict::Hold(1_000));
        assert_eq!(judge(r#"{"recheck_ms": 200}"#, Departure::ReplicaSilent), Verdict::Hold(200));
    }

    #[test]
    fn refuses_a_field_it_does_not_know_and_more_than_an_hour() {
        assert!(parse_config::<Config>(r#"{"recheck": 1}"#).is_err());
        assert!(Seed::configure(Config { recheck_ms: 3_600_001 }).is_err());
    }
}
