//! Decides which daemon gets a call: what slot `target` is asked and answers, and the native rule.

/// Candidates in one `target` decision at most.
pub const CANDIDATES_MAX: usize = 32;

/// What is true of a candidate (`target.traits`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Traits {
    /// Held by the deciding replica.
    pub local: bool,
    /// It registered the method when nobody had it any more because a connection was lost: it came back.
    pub recovered: bool,
    /// Its replica is shutting down in order.
    pub draining: bool,
    /// It can hand in a result after a reconnect.
    pub resumable: bool,
    /// Held by a replica that is not Pointwork.
    pub foreign: bool,
    /// It is the caller's own socket.
    pub caller: bool,
}

/// A daemon that registered the method (`target.candidate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// The replica that holds it; 0 for the deciding one.
    pub replica: u32,
    /// Milliseconds since it registered the method, with whichever replica.
    pub registered_ms: u32,
    /// Milliseconds since its last packet of any kind that the deciding replica knows of; of a socket of another
    /// replica it knows the connection and the answers to its own requests.
    pub idle_ms: u32,
    /// Its calls in flight from the deciding replica, over all its methods.
    pub in_flight: u32,
    /// Its last measured answer time in microseconds, over all its methods; 0 = it has not answered yet.
    pub answer_us: u32,
    /// Calls that ran into their deadline since its last answer.
    pub unanswered: u32,
    /// What else is true of it.
    pub traits: Traits,
}

/// The answer of `target.choose`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The index of a candidate in the list.
    Pick(u32),
    /// No candidate is good enough: the caller gets `RPC method not available`.
    Reject,
}

/// The first candidate: the oldest registration. Seed (multi-process): "multiple sockets in room → use first".
///
/// Without candidates there is nothing to pick and the answer is [`Choice::Reject`]; the host never asks that.
pub fn target(candidates: &[Candidate]) -> Choice {
    if candidates.is_empty() { Choice::Reject } else { Choice::Pick(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_first_candidate_is_the_target() {
        assert_eq!(target(&[candidate()]), Choice::Pick(0));
        assert_eq!(target(&[candidate(); 32]), Choice::Pick(0));
        assert_eq!(target(&[]), Choice::Reject);
    }
}
