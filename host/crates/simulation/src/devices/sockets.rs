//! Devices and their sockets, as they truly are.

use std::sync::Arc;

use pointwork_core::SocketId;
use pointwork_core::device::{Credentials, Key, Registration};

use super::meter::DeviceMeter;

pub(super) struct Device {
    pub(super) id: Arc<str>,
    /// Those that open sockets for it, one after the other each.
    pub(super) connectors: Vec<Connector>,
    /// Its sockets that have not ended on both sides.
    pub(super) sockets: Vec<usize>,
    /// Hash of its network address.
    pub(super) address: u64,
    /// How often it gives a heartbeat; 0: never.
    pub(super) heartbeat_us: u64,
    /// How many store operations and messages between replicas there were about it, and how many questions.
    pub(super) messages: u64,
    pub(super) questions: u64,
    pub(super) meter: DeviceMeter,
}

#[derive(Default)]
pub(super) struct Connector {
    pub(super) socket: Option<usize>,
    /// How often it has opened one.
    pub(super) attempts: u64,
    /// It opens no more.
    pub(super) is_over: bool,
}

pub(super) struct Socket {
    pub(super) device: usize,
    pub(super) connector: usize,
    pub(super) replica: usize,
    /// By which its latencies are drawn, and how many were.
    pub(super) name: u64,
    pub(super) packets: u64,
    /// The client has it and packets pass: not so of a half-open one.
    pub(super) is_live: bool,
    /// The replica has it.
    pub(super) is_known: bool,
    /// It wants the session, and was not told that it does not get it.
    pub(super) wants: bool,
    pub(super) is_registered: bool,
    /// It was refused, and when it may come back.
    pub(super) retry_after_ms: Option<u32>,
}

impl Socket {
    /// Open on both sides.
    pub(super) fn is_open(&self) -> bool {
        self.is_live && self.is_known
    }
}

/// The socket's number in the machines.
pub(super) fn number(socket: usize) -> SocketId {
    SocketId(socket as u128 + 1)
}

/// The index of a socket by its number.
pub(super) fn index(socket: SocketId) -> usize {
    usize::try_from(socket.0).unwrap_or(0).saturating_sub(1)
}

impl Device {
    /// What a socket of it registers with.
    pub(super) fn registration(&self, fingerprint: u64) -> Registration {
        Registration {
            device: Some(self.id.clone()),
            key: Key::of(Some(self.id.clone()), None, None),
            credentials: Credentials::Token,
            fingerprint: Some(fingerprint),
            address: Some(self.address),
            is_polling: false,
        }
    }
}
