//! Describes devices, their connections and their sockets as they truly are.

use std::sync::Arc;

use pointwork_core::SocketId;
use pointwork_core::devices::{Credentials, LimiterKey, Registration};

use super::meter::DeviceMeter;

pub(super) struct SimulatedDevice {
    pub(super) id: Arc<str>,
    /// Each opens one socket after the other.
    pub(super) connectors: Vec<DeviceConnector>,
    /// Its sockets that have not ended on both sides.
    pub(super) sockets: Vec<usize>,
    /// Hash of its network address.
    pub(super) address: u64,
    /// How often it gives a heartbeat; 0: never.
    pub(super) heartbeat_us: u64,
    pub(super) meter: DeviceMeter,
}

#[derive(Default)]
pub(super) struct DeviceConnector {
    pub(super) socket: Option<usize>,
    /// How many sockets it has opened.
    pub(super) attempts: u64,
    pub(super) is_over: bool,
}

/// What a socket registers with.
#[cfg_attr(not(test), allow(dead_code, reason = "the devices of a scenario have good tokens"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Credential {
    #[default]
    GoodToken,
    BadToken,
    /// A good token, and no word of the device that it is for.
    TokenWithoutDevice,
    PairingCode,
    Nothing,
}

#[derive(Default)]
pub(super) struct SimulatedSocket {
    pub(super) device: usize,
    pub(super) connector: usize,
    pub(super) replica: usize,
    pub(super) credential: Credential,
    /// Its latencies are drawn by this name.
    pub(super) name: u64,
    pub(super) packets: u64,
    /// Hash of its network address, if it is not the device's.
    pub(super) address: Option<u64>,
    /// The client has it and packets pass. A half-open socket is not live.
    pub(super) is_live: bool,
    /// The replica has it.
    pub(super) is_known: bool,
    /// It wants the session, and was not told that it does not get it.
    pub(super) wants: bool,
    pub(super) is_registered: bool,
    pub(super) is_silent: bool,
    /// When it may come back after it was refused.
    pub(super) retry_after_ms: Option<u32>,
    pub(super) last_heartbeat_us: u64,
    pub(super) longest_silence_us: u64,
}

impl SimulatedSocket {
    /// A socket that is not open at its replica yet.
    pub(super) fn new(device: usize, connector: usize, replica: usize, name: u64) -> SimulatedSocket {
        SimulatedSocket { device, connector, replica, name, is_live: true, ..SimulatedSocket::default() }
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_live && self.is_known
    }

    /// Its replica takes a heartbeat of it as the holder's.
    pub(super) fn heartbeat(&mut self, now_us: u64) {
        self.longest_silence_us = self.longest_silence_us(now_us);
        self.last_heartbeat_us = now_us;
    }

    pub(super) fn longest_silence_us(&self, now_us: u64) -> u64 {
        self.longest_silence_us.max(now_us - self.last_heartbeat_us)
    }

    /// What it registers with. `number` is its own, `fingerprint` and `address` are its device's.
    pub(super) fn registration(&self, number: usize, device: &SimulatedDevice, fingerprint: u64) -> Registration {
        let is_pairing = self.credential == Credential::PairingCode;
        let claimed =
            matches!(self.credential, Credential::GoodToken | Credential::BadToken).then(|| device.id.clone());
        let token = (self.credential == Credential::TokenWithoutDevice).then_some(7);
        let key = LimiterKey::of(claimed.clone(), is_pairing.then_some(fingerprint), token);
        let credentials = match self.credential {
            Credential::PairingCode => Credentials::Pairing { code: "code".into() },
            Credential::Nothing => Credentials::Missing,
            _ => Credentials::Token,
        };
        Registration {
            device: if is_pairing { Some(device.id.clone()) } else { claimed },
            key,
            credentials,
            fingerprint: Some(fingerprint),
            address: Some(self.address.unwrap_or(device.address)),
            is_polling: self.address.is_some() && (number + 1).is_multiple_of(3),
        }
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
