//! What a socket brings to register, and what the host answers to the machine's questions.

use std::sync::Arc;

use thiserror::Error;

use super::limiter::LimiterKey;
use super::record::DeviceRecord;
use crate::time::Time;

/// When something happened. Spans are measured by `now`; `unix_ms` is for what other replicas will read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Since the replica began to serve.
    pub now: Time,
    /// Milliseconds since the Unix epoch.
    pub unix_ms: u64,
}

/// A register that is being looked at: its number on its replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegisterId(pub u64);

/// A question or store operation: its number on its replica. An answer to any but the one that a device waits for is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// A `device:register`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The device. With a token the id that it claims, if it does. With a pairing code the id that the host gives it: always
    /// the same for the same fingerprint, or its duplicate sockets would be different devices.
    pub device: Option<Arc<str>>,
    /// By what the flap limiter counts it ([`LimiterKey::of`]): what the client itself said.
    pub key: LimiterKey,
    /// By what it wants to be believed.
    pub credentials: Credentials,
    /// Hash of its fingerprint; the same on every replica.
    pub fingerprint: Option<u64>,
    /// Hash of its network address; the same on every replica.
    pub address: Option<u64>,
    /// It is connected by HTTP long polling.
    pub is_polling: bool,
}

/// By what a register wants to be believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A device token, which the host keeps until it is asked to check it.
    Token,
    /// A pairing code; the device is not paired yet.
    Pairing {
        /// The code.
        code: Arc<str>,
    },
    /// Nothing.
    Missing,
}

/// What checking a token gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// It is good.
    Good {
        /// The device that it is for (`sub`), which is the one that was claimed, if one was.
        device: Arc<str>,
        /// The user or organisation that it names.
        owner: Option<Arc<str>>,
        /// The pairing code that it names: it was given before the device was paired.
        pairing_code: Option<Arc<str>>,
    },
    /// It is not, or is for another device than the one that was claimed.
    Bad,
}

/// Why a device is told to come back later (`device:throttled`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThrottleReason {
    /// `connect_rate`: the flap limiter, or there is no room.
    ConnectRate,
    /// `reconnect_rate`: the reconnect throttle, or too many of its registers wait.
    ReconnectRate,
    /// `session_settle`: another socket holds the session.
    SessionSettle,
}

impl ThrottleReason {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            ThrottleReason::ConnectRate => "connect_rate",
            ThrottleReason::ReconnectRate => "reconnect_rate",
            ThrottleReason::SessionSettle => "session_settle",
        }
    }
}

/// Why a device is not let in (`device:auth-error`). The text is what it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum AuthError {
    /// It brought neither a token nor a pairing code.
    #[error("device token or pairing code is required")]
    Missing,
    /// Its token is not good.
    #[error("invalid device token")]
    BadToken,
    /// An operator blocked it.
    #[error("device is blocked")]
    Blocked,
    /// It brought a pairing code, and is paired: it has a token.
    #[error("device is already paired")]
    AlreadyPaired,
    /// The socket has registered another device. Its session is not touched.
    #[error("another device is registered on this connection")]
    OtherDevice,
}

/// Why the machine has a socket closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CloseReason {
    /// It did not register in time.
    NeverRegistered,
    /// It was told why: throttled, or not let in.
    Refused,
    /// Another socket holds the session.
    Evicted,
    /// An operator blocked or disconnected the device.
    Operator,
}

/// No more sockets: this one is to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("too many sockets")]
pub struct TooManySockets;

/// The store could not be reached, or did not answer in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the store is away")]
pub struct StoreAway;

/// What became of a compare-and-set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SwapResult {
    /// The record is the new one.
    Won,
    /// The record had another epoch and was not changed.
    Lost,
    /// The store could not be reached or did not answer in time: the record may or may not be the new one.
    Away,
}

/// What the replica of an incumbent says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerAnswer {
    /// It is there. Spans by the clock of its replica, in milliseconds.
    Alive {
        /// Since it was accepted.
        age_ms: u32,
        /// Since its last packet of any kind.
        idle_ms: u32,
        /// Since its last heartbeat, or since it was accepted.
        heartbeat_ms: u32,
    },
    /// It is not there, or its replica is known to be dead.
    Gone,
    /// The replica did not answer, and is not known to be dead.
    Silent,
}

/// The answer to a read: a default record if there is none.
pub type ReadResult = Result<DeviceRecord, StoreAway>;
