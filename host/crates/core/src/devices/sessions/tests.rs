#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
//! Tests one replica, step by step. Races, faults and storms are in the simulation (`pointwork-simulation`, `devices/tests`).

mod other_replicas;
mod registers;
mod trials;

use std::collections::BTreeMap;

use super::*;
use crate::decisions::{Departure, Liveness, SettleVerdict, rules};
use crate::devices::event::{SessionOutcome, SessionReason};
use crate::devices::limiter::LimiterKey;
use crate::devices::record::{DeviceRecord, DeviceStatus, Fate, Holder};
use crate::devices::registration::{
    AuthError, CloseReason, Credentials, OpId, OwnerAnswer, Proof, Registration, StoreAway, SwapResult, ThrottleReason,
    TooManySockets,
};
use crate::devices::settings::{LimiterSettings, ThrottleSettings};
use crate::experiments::{Exposure, Trial};

const UNIX_MS: u64 = 1_800_000_000_000;
const ONE: SocketId = SocketId(1);
const TWO: SocketId = SocketId(2);
const THREE: SocketId = SocketId(3);

/// A replica whose store is a map and whose tokens are good; what it says to sockets, other replicas and dashboards is kept.
struct Replica {
    sessions: DeviceSessions,
    ms: u64,
    records: BTreeMap<Arc<str>, DeviceRecord>,
    is_store_stuck: bool,
    is_store_away: bool,
    is_token_good: bool,
    /// The pairing code that tokens carry.
    code_of_token: Option<&'static str>,
    /// Asked instead of the native rule.
    verdict: Option<SettleVerdict>,
    /// `settle` is not answered; its last question.
    holds_settle: bool,
    asked: Option<OpId>,
    /// What it was told of the device's arm with its last question.
    told: (Option<Box<Trial>>, Option<Box<Exposure>>),
    /// The arm that answers it.
    exposure: Option<Exposure>,
    /// So many compare-and-sets are lost: another replica writes first.
    loses: usize,
    said: Vec<DeviceCommand>,
}

impl Replica {
    fn new(settings: DeviceSettings) -> Replica {
        Replica {
            sessions: DeviceSessions::new("here".into(), settings),
            ms: 40_000,
            records: BTreeMap::new(),
            is_store_stuck: false,
            is_store_away: false,
            is_token_good: true,
            code_of_token: None,
            verdict: None,
            holds_settle: false,
            asked: None,
            told: (None, None),
            exposure: None,
            loses: 0,
            said: Vec::new(),
        }
    }

    /// Limits that are in nobody's way.
    fn wide() -> Replica {
        Replica::new(DeviceSettings {
            limiter: LimiterSettings { rate_max: 10_000, ..LimiterSettings::default() },
            throttle: ThrottleSettings { base_max: 10_000, hard_ceiling: 10_000, ..ThrottleSettings::default() },
            ..DeviceSettings::default()
        })
    }

    fn at(&self) -> Moment {
        Moment { now: Time::from_millis(self.ms), unix_ms: UNIX_MS + self.ms }
    }

    fn pass(&mut self, ms: u64) -> Vec<DeviceCommand> {
        let until = self.ms + ms;
        while let Some(at) = self.sessions.poll_timeout().filter(|at| *at <= Time::from_millis(until)) {
            self.ms = self.ms.max(at.as_micros().div_ceil(1_000));
            let now = self.at();
            self.sessions.handle_timeout(now);
            self.answer();
        }
        self.ms = until;
        std::mem::take(&mut self.said)
    }

    fn register(&mut self, socket: SocketId, registration: Registration) -> Vec<DeviceCommand> {
        let at = self.at();
        self.sessions.handle_register(socket, registration, at);
        self.answer();
        std::mem::take(&mut self.said)
    }

    /// Opens a socket and registers a device by its token.
    fn come(&mut self, socket: SocketId, device: &str) -> Vec<DeviceCommand> {
        let at = self.at();
        self.sessions.handle_open(socket, at).unwrap();
        self.register(socket, token(device))
    }

    fn close(&mut self, socket: SocketId) -> Vec<DeviceCommand> {
        let at = self.at();
        self.sessions.handle_close(socket, Departure::TransportLost, at);
        self.answer();
        std::mem::take(&mut self.said)
    }

    fn heartbeat(&mut self, socket: SocketId) -> Vec<DeviceCommand> {
        let at = self.at();
        self.sessions.handle_heartbeat(socket, &"d".into(), at);
        self.answer();
        std::mem::take(&mut self.said)
    }

    /// Another replica took the session a second ago.
    fn held_there(&mut self) {
        let holder = Holder {
            replica: "there".into(),
            socket: THREE,
            epoch: 0,
            accepted_ms: UNIX_MS + self.ms - 1_000,
            has_proved: true,
            fingerprint: None,
            address: None,
        };
        let known = self.record();
        self.records.insert("d".into(), known.accepted(holder, Fate::Evicted, 0, UNIX_MS + self.ms - 1_000));
    }

    fn owner_says(&mut self, said: &[DeviceCommand], answer: OwnerAnswer) -> Vec<DeviceCommand> {
        let op = said.iter().find_map(|command| match command {
            DeviceCommand::AskOwner { op, .. } => Some(*op),
            _ => None,
        });
        let at = self.at();
        self.sessions.handle_owner(&"d".into(), op.expect("the owner was asked"), answer, at);
        self.answer();
        std::mem::take(&mut self.said)
    }

    fn record(&self) -> DeviceRecord {
        self.records.get("d").cloned().unwrap_or_default()
    }

    fn holder(&self) -> Option<SocketId> {
        let holder = self.sessions.holder("d").map(|local| local.socket);
        let named = self.record().holder.filter(|holder| &*holder.replica == "here").map(|holder| holder.socket);
        assert_eq!(holder, named);
        holder
    }

    /// Carries out what has an answer, keeps the rest.
    fn answer(&mut self) {
        while let Some(command) = self.sessions.next_command() {
            let at = self.at();
            match command {
                DeviceCommand::CheckToken { socket, register } => {
                    self.said.push(DeviceCommand::CheckToken { socket, register });
                    let good = Proof::Good {
                        device: device_of(socket),
                        owner: Some("u".into()),
                        pairing_code: self.code_of_token.map(Arc::from),
                    };
                    let proof = if self.is_token_good { good } else { Proof::Bad };
                    self.sessions.handle_proof(socket, register, proof, at);
                }
                DeviceCommand::Read { device, op } if !self.is_store_stuck => {
                    let record = self.records.get(&device).cloned().unwrap_or_default();
                    let result = if self.is_store_away { Err(StoreAway) } else { Ok(record) };
                    self.sessions.handle_read(&device, op, result, at);
                }
                DeviceCommand::Swap { device, op, expected, record } if !self.is_store_stuck => {
                    if self.loses > 0 {
                        self.loses -= 1;
                        let other = self.record().touched(self.record().status, false, 0, at.unix_ms);
                        self.records.insert(device.clone(), other);
                    }
                    let is_same = self.records.get(&device).map_or(0, |record| record.epoch) == expected;
                    if is_same && !self.is_store_away {
                        self.records.insert(device.clone(), *record);
                    }
                    let swapped = if is_same { SwapResult::Won } else { SwapResult::Lost };
                    let swapped = if self.is_store_away { SwapResult::Away } else { swapped };
                    self.sessions.handle_swapped(&device, op, swapped, at);
                }
                DeviceCommand::AskSettle { device, op, window_ms, incumbent, trial, pinned, .. } => {
                    (self.asked, self.told) = (Some(op), (trial, pinned));
                    assert_ne!(incumbent.liveness, Liveness::Gone);
                    if !self.holds_settle {
                        let verdict = self.verdict.unwrap_or_else(|| rules::settle(window_ms, &incumbent));
                        self.sessions.handle_verdict(&device, op, verdict, self.exposure.clone(), at);
                    }
                }
                other => self.said.push(other),
            }
        }
    }
}

/// Sockets from 100 on are of devices of their own.
fn device_of(socket: SocketId) -> Arc<str> {
    if socket.0 < 100 { "d".into() } else { format!("d{}", socket.0).into() }
}

fn token(device: &str) -> Registration {
    Registration {
        device: Some(device.into()),
        key: LimiterKey::Device(device.into()),
        credentials: Credentials::Token,
        fingerprint: Some(1),
        address: None,
        is_polling: false,
    }
}

fn pairing() -> Registration {
    let credentials = Credentials::Pairing { code: "code".into() };
    Registration { key: LimiterKey::Fingerprint(1), credentials, ..token("d") }
}

fn throttled(said: &[DeviceCommand]) -> Option<(ThrottleReason, u32)> {
    said.iter().find_map(|command| match command {
        DeviceCommand::Throttled { reason, retry_after_ms, .. } => Some((*reason, *retry_after_ms)),
        _ => None,
    })
}

fn is_closed(said: &[DeviceCommand], socket: SocketId, why: CloseReason) -> bool {
    said.contains(&DeviceCommand::Close { socket, why })
}

fn is_registered(said: &[DeviceCommand], socket: SocketId) -> bool {
    said.iter().any(|command| matches!(command, DeviceCommand::Registered { socket: of, .. } if *of == socket))
}

fn statuses(said: &[DeviceCommand]) -> Vec<DeviceStatus> {
    let status = |command: &DeviceCommand| match command {
        DeviceCommand::Status { status, .. } => Some(*status),
        _ => None,
    };
    said.iter().filter_map(status).collect()
}

fn decided(said: &[DeviceCommand]) -> Vec<(SessionOutcome, SessionReason)> {
    let event = |command: &DeviceCommand| match command {
        DeviceCommand::Event(event) => Some((event.outcome, event.reason)),
        _ => None,
    };
    said.iter().filter_map(event).collect()
}
