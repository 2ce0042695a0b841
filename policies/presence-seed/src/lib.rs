//! A call in flight is given up as soon as its daemon is proven gone, and held while that is only suspected.
//!
//! The native default of the `presence` slot. A replica that is merely not heard from proves nothing: its daemon may be
//! at work and answer yet. A daemon that can hand in its result after a reconnect (`capabilities: ["rpc-resume"]`) has
//! some time to come back when its connection was lost; once a daemon with the method is back, the call goes on until
//! its deadline. `presence-tolerant` measures that time by how long the daemon was away before.

use pointwork_policy_sdk::presence::{Doubt, Presence, Verdict};
use pointwork_policy_sdk::{Call, Departure, Moment, PolicyError, check_span};
use serde::Deserialize;

/// What the operator may set.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How soon to look again at a call that is held, in milliseconds; the host looks no more often than every 10.
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
pub struct Seed(Config);

impl Presence for Seed {
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
        ask(config, cause, false, true, 0)
    }

    fn ask(config: &str, cause: Departure, resumable: bool, returned: bool, since_ms: u32) -> Verdict {
        let at = Moment { now_ms: 0, seed: 0, key: 0 };
        let call = Call { method: "m".into(), params_bytes: 0, waited_ms: 50, left_ms: 29_950, attempt: 0 };
        let doubt = Doubt { cause, since_ms, sent_ms: 50, resumable, returned, departures: 1, returns_ms: vec![100] };
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
    fn a_daemon_that_can_hand_in_has_time_to_come_back() {
        for loss in [Departure::TransportLost, Departure::ReplicaLost, Departure::Drained] {
            let judge = |returned, since_ms| ask(r#"{"resume_ms": 5000}"#, loss, true, returned, since_ms);
            assert_eq!(judge(false, 4_999), Verdict::Hold(1_000), "{loss:?}");
            assert_eq!(judge(false, 5_000), Verdict::Abort, "{loss:?}");
            assert_eq!(judge(true, 900_000), Verdict::Hold(1_000), "{loss:?}");
        }
        for end in [Departure::Closed, Departure::Unregistered, Departure::Evicted] {
            assert_eq!(ask("{}", end, true, true, 0), Verdict::Abort, "{end:?}");
        }
    }

    #[test]
    fn refuses_a_field_it_does_not_know_and_more_than_an_hour() {
        assert!(parse_config::<Config>(r#"{"recheck": 1}"#).is_err());
        assert!(Seed::configure(Config { recheck_ms: 3_600_001, ..Config::default() }).is_err());
        assert!(Seed::configure(Config { resume_ms: 3_600_001, ..Config::default() }).is_err());
    }
}
