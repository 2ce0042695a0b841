//! Reports of decisions: the host writes each to the log, counts it and records it.

use std::sync::Arc;

use super::registration::{AuthError, OpId};
use crate::decisions::Incumbent;
use crate::experiments::Exposure;
use crate::ids::SocketId;

/// A decision about a device's session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEvent {
    /// The device, as far as it is known: of a register that was not looked at, the one that it claims.
    pub device: Option<Arc<str>>,
    /// The socket that was decided on.
    pub socket: Option<SocketId>,
    /// What was decided.
    pub outcome: SessionOutcome,
    /// Why.
    pub reason: SessionReason,
    /// The record's epoch that the decision made or rests on; 0 if it rests on none.
    pub epoch: u64,
    /// The question to `settle` that it came from: by it the host knows arm and generation.
    pub ask: Option<OpId>,
    /// What was known of the holder that there was.
    pub incumbent: Option<Incumbent>,
    /// The arm that decided, if one did.
    pub exposure: Option<Box<Exposure>>,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionOutcome {
    /// The socket has the session.
    Accepted,
    /// The socket does not get it and is closed.
    Refused,
    /// The socket had the session and is closed.
    Evicted,
    /// The socket has the session and registered again.
    Refreshed,
    /// The device is offline.
    Offline,
}

/// Why it was decided so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionReason {
    /// Accepted: nobody had it.
    Free,
    /// Accepted: the holder was gone. Offline: the holder is gone.
    HolderGone,
    /// Accepted or refused: `settle` said so.
    Settled,
    /// Accepted: `settle` said so, and its predecessor stays for a hand-over.
    Beside,
    /// Accepted: the store was away, and nobody here had it.
    Provisional,
    /// Accepted: the record was lost or named one that was gone, while this socket was there.
    Reconciled,
    /// Refused: the flap limiter, in a cooldown.
    Flapping,
    /// Refused: the flap limiter, in a quarantine.
    Quarantined,
    /// Refused: the reconnect throttle.
    Reconnecting,
    /// Refused: too many registers of the device wait, or it waited too long.
    Busy,
    /// Refused: the record changed under every try.
    Contended,
    /// Refused: the token was not checked in time, or the store was away and it brought none.
    Unchecked,
    /// Refused: no room for another device.
    Full,
    /// Refused: not let in.
    Auth(AuthError),
    /// Evicted: a newer socket has the session. Refused: so it was when it was about to get it.
    Superseded,
    /// Evicted: an operator blocked or disconnected the device.
    Operator,
    /// Refreshed: the socket registered again.
    Again,
    /// Offline: no heartbeat.
    Silent,
}
