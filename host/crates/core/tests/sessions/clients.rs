//! The sockets of the simulation, and the holders that replicas believe in.

use std::sync::Arc;

use pointwork_core::SocketId;
use pointwork_core::devices::{Credentials, LimiterKey, LocalHolder, Registration};

/// What a socket brings to register with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Brings {
    GoodToken,
    BadToken,
    /// A good token, but it does not say for which device.
    OnlyToken,
    Pairing,
    Nothing,
}

/// A socket: the client's end and the replica's.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) replica: usize,
    pub(crate) device: Arc<str>,
    pub(crate) brings: Brings,
    /// The client is there: a half-open connection has none.
    pub(crate) is_alive: bool,
    pub(crate) heartbeats: bool,
    pub(crate) last_heartbeat_us: u64,
    longest_silence_us: u64,
}

/// A socket that a replica takes for the holder.
#[derive(Debug)]
pub(crate) struct Believed {
    pub(crate) replica: Arc<str>,
    pub(crate) holder: LocalHolder,
}

impl Client {
    pub(crate) fn new(replica: usize, device: Arc<str>, brings: Brings, heartbeats: bool, now_us: u64) -> Client {
        Client { replica, device, brings, is_alive: true, heartbeats, last_heartbeat_us: now_us, longest_silence_us: 0 }
    }

    /// Its replica got a heartbeat.
    pub(crate) fn heartbeat(&mut self, now_us: u64) {
        self.longest_silence_us = self.longest_silence_us(now_us);
        self.last_heartbeat_us = now_us;
    }

    pub(crate) fn longest_silence_us(&self, now_us: u64) -> u64 {
        self.longest_silence_us.max(now_us - self.last_heartbeat_us)
    }

    pub(crate) fn registration(&self, socket: SocketId) -> Registration {
        let fingerprint = self.device.bytes().last().map(u64::from);
        let claimed = match self.brings {
            Brings::GoodToken | Brings::BadToken => Some(self.device.clone()),
            Brings::OnlyToken | Brings::Pairing | Brings::Nothing => None,
        };
        let token = (self.brings == Brings::OnlyToken).then_some(7);
        let key = LimiterKey::of(claimed.clone(), fingerprint.filter(|_| self.brings == Brings::Pairing), token);
        let (credentials, device) = match self.brings {
            Brings::GoodToken | Brings::BadToken | Brings::OnlyToken => (Credentials::Token, claimed),
            Brings::Pairing => (Credentials::Pairing { code: "code".into() }, Some(self.device.clone())),
            Brings::Nothing => (Credentials::Missing, claimed),
        };
        Registration {
            device,
            key,
            credentials,
            fingerprint,
            address: Some(socket.0 as u64 % 2),
            is_polling: socket.0.is_multiple_of(3),
        }
    }
}
