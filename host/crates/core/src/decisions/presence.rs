//! Decides whether a call whose target left is given up: what slot `presence` is asked and answers, and the native rule.

use super::call::Departure;

/// How soon a doubt is looked at again, in milliseconds. Seed (multi-process): `RPC_PRESENCE_POLL_MS`.
pub const RECHECK_MS: u32 = 1_000;

/// What is known of a target that left or is in doubt while a call is in flight to it (`presence.doubt`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// What is known of the target.
    pub cause: Departure,
    /// Milliseconds since the doubt arose.
    pub since_ms: u32,
    /// Milliseconds since the request was sent to the target.
    pub sent_ms: u32,
    /// The target can hand in a result after a reconnect.
    pub resumable: bool,
    /// A daemon of the same user has registered the method since the request was sent, and still has it.
    pub returned: bool,
    /// How often a daemon with this method left in the last hour.
    pub departures: u32,
    /// How many milliseconds its last absences lasted, newest first; at most [`super::call::RETURNS_MAX`].
    pub returns_ms: Vec<u32>,
}

/// The answer of `presence.judge`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The caller gets `RPC target disconnected`.
    Abort,
    /// Keep waiting; ask again in so many milliseconds.
    Hold(u32),
}

/// Gives up on proof of absence; holds for `recheck_ms` ([`RECHECK_MS`] unless set otherwise) while there is none.
///
/// Seed (multi-process): "target absent → throw 'RPC target disconnected'", without its mistake of taking the
/// silence of a replica for the absence of a socket.
///
/// A target that can hand in its result and whose connection was lost is held, too: until a daemon with the method is
/// back, but no longer than `resume_ms` ([`super::grace::GRACE_MS`] unless set otherwise), and then on.
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

#[cfg(test)]
mod tests {
    use super::super::grace::GRACE_MS;
    use super::*;

    fn doubt(cause: Departure) -> Doubt {
        Doubt { cause, since_ms: 0, sent_ms: 10, resumable: false, returned: true, departures: 1, returns_ms: vec![5] }
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
}
