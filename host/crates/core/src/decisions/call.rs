//! What every question about a call tells a policy: the call, and why a daemon left (`types` of `wit/policy.wit`).

use std::sync::Arc;

/// Absence lengths in one `grace` or `presence` decision at most.
pub const RETURNS_MAX: usize = 8;
/// How long a call may take in all, in milliseconds. Seed (multi-process): `RPC_CALL_TIMEOUT_MS`.
pub const CALL_TIMEOUT_MS: u32 = 30_000;

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
