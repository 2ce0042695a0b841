//! A call in flight survives a short absence of its daemon, where its answer can still come.
//!
//! For daemons on shaky networks that can hand in a result after a reconnect (`capabilities: ["rpc-resume"]`), and for
//! rollouts. A call is held
//! - while a replica is silent, for that proves nothing;
//! - for a while after its daemon's connection broke, if that daemon can hand in the result later;
//! - for a while after its daemon took the method back: the socket is still there, and a daemon that stops in order
//!   finishes what it has begun.
//!
//! Everything else is given up at once, as `presence-seed` does: a daemon that cannot resume has no way to answer once
//! its socket is gone, and waiting would only cost the caller time. The [`Config`] says all spans; no call is held
//! beyond its own deadline.

use pointwork_policy_sdk::presence::{Doubt, Presence, Verdict};
use pointwork_policy_sdk::{Call, Departure, Moment, PolicyError};

mod config;

pub use config::Config;

/// The rule.
pub struct Tolerant(Config);

impl Presence for Tolerant {
    type Config = Config;

    fn configure(config: Config) -> Result<Self, String> {
        config.checked().map(Self)
    }

    fn judge(&self, _: &Moment, call: &Call, doubt: &Doubt) -> Result<Verdict, PolicyError> {
        let tolerance_ms = match doubt.cause {
            Departure::ReplicaSilent => u32::MAX,
            Departure::TransportLost | Departure::ReplicaLost | Departure::Drained if doubt.resumable => {
                self.tolerance_ms(doubt)
            }
            Departure::Unregistered => self.tolerance_ms(doubt),
            _ => 0,
        };
        let left_ms = tolerance_ms.saturating_sub(doubt.since_ms);
        Ok(match left_ms {
            0 => Verdict::Abort,
            _ => Verdict::Hold(left_ms.min(self.0.recheck_after_ms(call.attempt))),
        })
    }
}

impl Tolerant {
    fn tolerance_ms(&self, doubt: &Doubt) -> u32 {
        // It is back: its result may come any moment, and a call given up now would have been for nothing.
        if doubt.returned {
            return self.0.tolerance_max_ms;
        }
        let slowest_ms = doubt.returns_ms.iter().copied().max().unwrap_or(0);
        let expected_ms = u64::from(slowest_ms) * u64::from(self.0.return_percent) / 100;
        u32::try_from(expected_ms).unwrap_or(u32::MAX).clamp(self.0.tolerance_ms, self.0.tolerance_max_ms)
    }
}

pointwork_policy_sdk::export_presence!(Tolerant);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A resumable daemon whose connection has just broken for the first time.
    fn lost() -> Doubt {
        Doubt {
            cause: Departure::TransportLost,
            since_ms: 0,
            sent_ms: 50,
            resumable: true,
            returned: false,
            departures: 1,
            returns_ms: vec![],
        }
    }

    fn judge(attempt: u32, doubt: &Doubt) -> Verdict {
        let at = Moment { now_ms: 0, seed: 0, key: 0 };
        let call = Call { method: "m".into(), params_bytes: 0, waited_ms: 50, left_ms: 29_950, attempt };
        Tolerant::configure(Config::default()).unwrap().judge(&at, &call, doubt).unwrap()
    }

    #[test]
    fn a_resumable_daemon_has_time_to_come_back() {
        for cause in [Departure::TransportLost, Departure::ReplicaLost, Departure::Drained] {
            let absent = |since_ms| Doubt { cause, since_ms, ..lost() };
            assert_eq!(judge(0, &absent(0)), Verdict::Hold(250));
            assert_eq!(judge(5, &absent(4_900)), Verdict::Hold(100));
            assert_eq!(judge(6, &absent(5_000)), Verdict::Abort);
        }
    }

    #[test]
    fn a_daemon_that_cannot_resume_is_given_up_with_its_socket() {
        for cause in [Departure::TransportLost, Departure::ReplicaLost, Departure::Drained] {
            assert_eq!(judge(0, &Doubt { cause, resumable: false, ..lost() }), Verdict::Abort);
        }
    }

    #[test]
    fn leaving_on_purpose_is_final_except_that_an_unregistered_daemon_may_finish() {
        for cause in [Departure::Closed, Departure::Evicted, Departure::NeverSeen] {
            assert_eq!(judge(0, &Doubt { cause, ..lost() }), Verdict::Abort);
        }
        let unregistered = |since_ms| Doubt { cause: Departure::Unregistered, resumable: false, since_ms, ..lost() };
        assert_eq!(judge(0, &unregistered(0)), Verdict::Hold(250));
        assert_eq!(judge(0, &unregistered(5_000)), Verdict::Abort);
    }

    #[test]
    fn history_and_a_return_stretch_the_tolerance_to_its_bounds() {
        let absent = |since_ms, returns_ms: &[u32]| Doubt { since_ms, returns_ms: returns_ms.to_vec(), ..lost() };
        assert_eq!(judge(9, &absent(8_900, &[6_000, 100])), Verdict::Hold(100));
        assert_eq!(judge(9, &absent(9_000, &[6_000, 100])), Verdict::Abort);
        assert_eq!(judge(9, &absent(20_000, &[u32::MAX])), Verdict::Abort);
        assert_eq!(judge(9, &Doubt { returned: true, ..absent(9_000, &[]) }), Verdict::Hold(4_000));
    }

    #[test]
    fn a_silent_replica_is_looked_at_ever_more_rarely() {
        let silent = |since_ms| Doubt { cause: Departure::ReplicaSilent, resumable: false, since_ms, ..lost() };
        assert_eq!(judge(0, &silent(0)), Verdict::Hold(250));
        assert_eq!(judge(3, &silent(1_750)), Verdict::Hold(2_000));
        assert_eq!(judge(30, &silent(600_000)), Verdict::Hold(4_000));
    }
}
