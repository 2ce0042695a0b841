//! The native defaults: the seeds' own rules. They answer whenever a policy cannot, and the default policies say the
//! same in wasm; a test of the workspace holds the two equal.

use crate::decision::{Absence, Candidate, Choice, Departure, Doubt, Incumbent, Liveness, SettleVerdict, Verdict};

/// How long a call waits for a daemon that is not there, in milliseconds. Seed (multi-process):
/// `RPC_RECONNECT_GRACE_MS`, twice the heartbeat of the Node adapter.
pub const GRACE_MS: u32 = 10_000;
/// How soon a doubt is looked at again, in milliseconds. Seed (multi-process): `RPC_PRESENCE_POLL_MS`.
pub const RECHECK_MS: u32 = 1_000;
/// How long a call may take in all, in milliseconds. Seed (multi-process): `RPC_CALL_TIMEOUT_MS`.
pub const CALL_TIMEOUT_MS: u32 = 30_000;
/// How long after it was accepted an incumbent is held, in milliseconds. Seed (eviction-storm): `SESSION_SETTLE_MS`,
/// "2–3 s".
pub const SETTLE_MS: u32 = 2_500;

/// The first candidate: the oldest registration. Seed (multi-process): "multiple sockets in room → use first".
///
/// Without candidates there is nothing to pick and the answer is [`Choice::Reject`]; the host never asks that.
pub fn target(candidates: &[Candidate]) -> Choice {
    if candidates.is_empty() { Choice::Reject } else { Choice::Pick(0) }
}

/// A fixed wait of `grace_ms` ([`GRACE_MS`] unless set otherwise), whatever is known of the absence.
pub fn grace(_absence: &Absence, grace_ms: u32) -> u32 {
    grace_ms
}

/// Gives up on proof of absence; holds for `recheck_ms` ([`RECHECK_MS`] unless set otherwise) while there is none.
///
/// Seed (multi-process): "target absent → throw 'RPC target disconnected'", without its mistake of taking the
/// silence of a replica for the absence of a socket.
///
/// A target that can hand in its result and whose connection was lost is held, too: until a daemon with the method is
/// back, but no longer than `resume_ms` ([`GRACE_MS`] unless set otherwise), and then on.
pub fn presence(doubt: &Doubt, recheck_ms: u32, resume_ms: u32) -> Verdict {
    let may_hand_in = doubt.resumable && (doubt.returned || doubt.since_ms < resume_ms);
    match doubt.cause {
        Departure::ReplicaSilent => Verdict::Hold(recheck_ms),
        Departure::TransportLost | Departure::ReplicaLost | Departure::Drained if may_hand_in => {
            Verdict::Hold(recheck_ms)
        }
        Departure::NeverSeen
        | Departure::Closed
        | Departure::Unregistered
        | Departure::TransportLost
        | Departure::ReplicaLost
        | Departure::Drained
        | Departure::Evicted => Verdict::Abort,
    }
}

/// Holds an incumbent that is alive and was accepted less than `window_ms` ([`SETTLE_MS`] unless set otherwise) ago;
/// the newcomer is told to come back when the window has passed. Seed (eviction-storm): hold-incumbent with the
/// liveness safeguard, which never strands a device on a dead socket.
pub fn settle(window_ms: u32, incumbent: &Incumbent) -> SettleVerdict {
    match window_ms.checked_sub(incumbent.age_ms) {
        Some(left_ms) if left_ms > 0 && incumbent.liveness == Liveness::Alive => SettleVerdict::Refuse(left_ms),
        _ => SettleVerdict::Accept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Traits;

    fn candidate() -> Candidate {
        Candidate {
            replica: 0,
            registered_ms: 1,
            idle_ms: 2,
            in_flight: 3,
            answer_us: 4,
            unanswered: 5,
            traits: Traits::default(),
        }
    }

    fn doubt(cause: Departure) -> Doubt {
        Doubt { cause, since_ms: 0, sent_ms: 10, resumable: false, returned: true, departures: 1, returns_ms: vec![5] }
    }

    #[test]
    fn the_first_candidate_is_the_target() {
        assert_eq!(target(&[candidate()]), Choice::Pick(0));
        assert_eq!(target(&[candidate(); 32]), Choice::Pick(0));
        assert_eq!(target(&[]), Choice::Reject);
    }

    #[test]
    fn grace_is_fixed() {
        let absence = Absence {
            cause: Departure::NeverSeen,
            gone_ms: u32::MAX,
            departures: 9,
            returns_ms: vec![1, 2],
            waiting: 7,
            replica_age_ms: 0,
        };
        assert_eq!(grace(&absence, GRACE_MS), 10_000);
        assert_eq!(grace(&absence, 0), 0);
    }

    #[test]
    fn presence_aborts_on_proof_only() {
        for cause in [
            Departure::NeverSeen,
            Departure::Closed,
            Departure::Unregistered,
            Departure::TransportLost,
            Departure::ReplicaLost,
            Departure::Drained,
            Departure::Evicted,
        ] {
            assert_eq!(presence(&doubt(cause), RECHECK_MS, GRACE_MS), Verdict::Abort, "{cause:?}");
        }
        assert_eq!(presence(&doubt(Departure::ReplicaSilent), RECHECK_MS, GRACE_MS), Verdict::Hold(1_000));
    }

    #[test]
    fn presence_holds_for_a_result_that_may_be_handed_in() {
        let judge = |cause, returned, since_ms| {
            let doubt = Doubt { resumable: true, returned, since_ms, ..doubt(cause) };
            presence(&doubt, RECHECK_MS, GRACE_MS)
        };
        for loss in [Departure::TransportLost, Departure::ReplicaLost, Departure::Drained] {
            assert_eq!(judge(loss, false, GRACE_MS - 1), Verdict::Hold(1_000), "{loss:?}");
            assert_eq!(judge(loss, false, GRACE_MS), Verdict::Abort, "{loss:?}: it is not coming back");
            assert_eq!(judge(loss, true, u32::MAX), Verdict::Hold(1_000), "{loss:?}: it is back, and at work");
        }
        for end in [Departure::Closed, Departure::Unregistered, Departure::Evicted, Departure::NeverSeen] {
            assert_eq!(judge(end, true, 0), Verdict::Abort, "{end:?}");
        }
    }

    #[test]
    fn settle_holds_a_live_incumbent_within_its_window() {
        let incumbent = |liveness, age_ms| Incumbent { liveness, age_ms, idle_ms: 0, heartbeat_ms: 0, local: true };
        let decide = |liveness, age_ms| settle(SETTLE_MS, &incumbent(liveness, age_ms));
        assert_eq!(decide(Liveness::Alive, 0), SettleVerdict::Refuse(2_500));
        assert_eq!(decide(Liveness::Alive, 2_499), SettleVerdict::Refuse(1));
        assert_eq!(decide(Liveness::Alive, 2_500), SettleVerdict::Accept);
        assert_eq!(decide(Liveness::Alive, u32::MAX), SettleVerdict::Accept);
        assert_eq!(decide(Liveness::Doubtful, 0), SettleVerdict::Accept);
        assert_eq!(decide(Liveness::Gone, 0), SettleVerdict::Accept);
        assert_eq!(settle(0, &incumbent(Liveness::Alive, 0)), SettleVerdict::Accept);
    }
}
