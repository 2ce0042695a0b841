//! What policies are asked and what they answer: `wit/policy.wit` as plain types, one to one.
//!
//! The record `moment` (`at`) is not here: wall clock, seed and key are added by the host when it asks. Spans are cut
//! by [`crate::time::span_ms`]: 4294967295 where they do not fit or are not known.

use std::sync::Arc;

/// Candidates in one `target` decision at most.
pub const CANDIDATES_MAX: usize = 32;
/// Absence lengths in one `grace` or `presence` decision at most.
pub const RETURNS_MAX: usize = 8;
/// Session events in one `settle` decision at most.
pub const HISTORY_MAX: usize = 16;

/// An rpc-call on its way (`types.call`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The method as the caller wrote it.
    pub method: Arc<str>,
    /// Size of the call as it came over the wire, in bytes, without binary attachments.
    pub params_bytes: u32,
    /// Milliseconds since the call arrived at this replica.
    pub waited_ms: u32,
    /// Milliseconds until its deadline.
    pub left_ms: u32,
    /// How often this slot has been asked about this call (`presence`: about this doubt) before.
    pub attempt: u32,
}

/// Why a daemon, or a socket, is no longer there (`types.departure`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Departure {
    /// Nobody by that name was seen in the last hour.
    NeverSeen,
    /// The client closed the connection on purpose.
    Closed,
    /// The socket is still there but took the method back.
    Unregistered,
    /// The connection broke: transport error or ping timeout.
    TransportLost,
    /// The replica that held the socket is known to be dead.
    ReplicaLost,
    /// The replica that holds the socket is not heard from; the socket may well live.
    ReplicaSilent,
    /// The replica is shutting down in order and let the socket go.
    Drained,
    /// The host closed the socket in favour of another one.
    Evicted,
}

impl Departure {
    /// Whether the connection was lost rather than ended: whoever it was will want to come back.
    pub const fn is_loss(self) -> bool {
        match self {
            Departure::TransportLost | Departure::ReplicaLost | Departure::ReplicaSilent | Departure::Drained => true,
            Departure::NeverSeen | Departure::Closed | Departure::Unregistered | Departure::Evicted => false,
        }
    }

    /// Whether it proves that the socket is gone. A socket that took a method back, or whose replica is not heard from,
    /// may well be there.
    pub const fn is_proof(self) -> bool {
        match self {
            Departure::Closed
            | Departure::TransportLost
            | Departure::ReplicaLost
            | Departure::Drained
            | Departure::Evicted => true,
            Departure::NeverSeen | Departure::Unregistered | Departure::ReplicaSilent => false,
        }
    }
}

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

/// What is known when nobody has registered a method (`grace.absence`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    /// Why the last daemon that had the method left.
    pub cause: Departure,
    /// Milliseconds since it left.
    pub gone_ms: u32,
    /// How often a daemon with this method left in the last hour.
    pub departures: u32,
    /// How many milliseconds its last absences lasted, newest first; at most [`RETURNS_MAX`].
    pub returns_ms: Vec<u32>,
    /// Calls that are being held for the same method already.
    pub waiting: u32,
    /// Milliseconds since the deciding replica began to serve.
    pub replica_age_ms: u32,
}

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
    /// How many milliseconds its last absences lasted, newest first; at most [`RETURNS_MAX`].
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

/// What the host knows of an incumbent's connection (`settle.liveness`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Liveness {
    /// In the namespace, and its replica is alive.
    Alive,
    /// Its replica is not heard from.
    Doubtful,
    /// Proven gone; the newcomer is accepted whatever a policy says.
    Gone,
}

/// The socket that holds a device's session (`settle.incumbent`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Incumbent {
    /// What is known of its connection.
    pub liveness: Liveness,
    /// Milliseconds since it was accepted.
    pub age_ms: u32,
    /// Milliseconds since its last packet of any kind, engine pings included.
    pub idle_ms: u32,
    /// Milliseconds since its last `device:heartbeat`.
    pub heartbeat_ms: u32,
    /// Held by the deciding replica.
    pub local: bool,
}

/// The socket that wants a device's session (`settle.newcomer`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Newcomer {
    /// It proved a device token.
    pub paired: bool,
    /// Its fingerprint is the incumbent's.
    pub same_fingerprint: bool,
    /// It comes from the incumbent's network address.
    pub same_address: bool,
    /// It is connected by HTTP long polling.
    pub polling: bool,
}

/// What can happen to a device's session (`settle.happening`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Happening {
    /// A socket got the session.
    Accepted,
    /// A socket was told to try again later.
    Refused,
    /// The holder was closed in favour of another socket.
    Evicted,
    /// The holder's connection broke.
    Lost,
    /// The holder closed its connection on purpose.
    Closed,
    /// The holder registered again on the same socket.
    Refreshed,
}

/// Something that happened to a device's session (`settle.event`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Event {
    /// Milliseconds ago.
    pub ago_ms: u32,
    /// What it was.
    pub what: Happening,
}

/// The answer of `settle.decide`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SettleVerdict {
    /// The newcomer holds the session, the incumbent is evicted.
    Accept,
    /// The incumbent stays; the newcomer is told to try again in so many milliseconds.
    Refuse(u32),
    /// The newcomer holds the session; the incumbent is closed after so many milliseconds.
    Beside(u32),
}
