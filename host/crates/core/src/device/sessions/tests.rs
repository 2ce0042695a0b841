#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
//! One replica, step by step. Races, faults and storms are the simulation's (`tests/sessions`).

mod trials;

use std::collections::BTreeMap;

use super::*;
use crate::decision::{Departure, Liveness, SettleVerdict};
use crate::device::event::{Outcome, Reason};
use crate::device::record::{Fate, Holder, Record, Status};
use crate::device::register::{
    AuthError, CloseReason, Credentials, OpId, OwnerAnswer, Proof, Registration, StoreAway, Swapped, ThrottleReason,
    TooManySockets,
};
use crate::device::{Key, LimiterSettings, ThrottleSettings};
use crate::experiment::{Exposure, Trial};
use crate::rules;

const UNIX_MS: u64 = 1_800_000_000_000;
const ONE: SocketId = SocketId(1);
const TWO: SocketId = SocketId(2);
const THREE: SocketId = SocketId(3);

/// A replica whose store is a map and whose tokens are good; what it says to sockets, other replicas and dashboards is kept.
struct Replica {
    sessions: Sessions,
    ms: u64,
    records: BTreeMap<Arc<str>, Record>,
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
            sessions: Sessions::new("here".into(), settings),
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

    fn record(&self) -> Record {
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
                    let swapped = if is_same { Swapped::Won } else { Swapped::Lost };
                    let swapped = if self.is_store_away { Swapped::Away } else { swapped };
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
        key: Key::Device(device.into()),
        credentials: Credentials::Token,
        fingerprint: Some(1),
        address: None,
        is_polling: false,
    }
}

fn pairing() -> Registration {
    let credentials = Credentials::Pairing { code: "code".into() };
    Registration { key: Key::Fingerprint(1), credentials, ..token("d") }
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

fn statuses(said: &[DeviceCommand]) -> Vec<Status> {
    let status = |command: &DeviceCommand| match command {
        DeviceCommand::Status { status, .. } => Some(*status),
        _ => None,
    };
    said.iter().filter_map(status).collect()
}

fn decided(said: &[DeviceCommand]) -> Vec<(Outcome, Reason)> {
    let event = |command: &DeviceCommand| match command {
        DeviceCommand::Event(event) => Some((event.outcome, event.reason)),
        _ => None,
    };
    said.iter().filter_map(event).collect()
}

#[test]
fn what_a_gate_refuses_the_next_never_sees() {
    let mut replica = Replica::new(DeviceSettings::default());
    replica.is_store_stuck = true;
    replica.is_token_good = false;
    let said = replica.come(ONE, "d");
    let error = DeviceCommand::AuthError { socket: ONE, error: AuthError::BadToken };
    assert!(said.contains(&error) && is_closed(&said, ONE, CloseReason::Refused));
    assert!(!said.iter().any(|command| matches!(command, DeviceCommand::Read { .. })));

    replica.is_token_good = true;
    let come = |replica: &mut Replica, socket: u128| replica.come(SocketId(socket), "d");
    for socket in 10..15 {
        assert_eq!(throttled(&come(&mut replica, socket)), None);
    }
    for socket in 15..29 {
        let said = come(&mut replica, socket);
        assert!(matches!(throttled(&said), Some((ThrottleReason::ReconnectRate, _))), "{said:?}");
        assert!(matches!(said.first(), Some(DeviceCommand::CheckToken { .. })));
    }

    let throttle = Replica::wide().sessions.settings.throttle;
    let mut replica = Replica::new(DeviceSettings { throttle, ..DeviceSettings::default() });
    for socket in 10..30 {
        assert!(matches!(come(&mut replica, socket).first(), Some(DeviceCommand::CheckToken { .. })));
    }
    let said = come(&mut replica, 30);
    assert_eq!(throttled(&said), Some((ThrottleReason::ConnectRate, 60_000)));
    assert_eq!(
        (decided(&said), said.len()),
        (vec![(Outcome::Refused, Reason::Flapping)], 3),
        "its token is not looked at"
    );
    assert_eq!(replica.holder(), Some(SocketId(10)));
}

#[test]
fn a_register_on_the_same_socket_is_a_refresh() {
    let mut replica = Replica::new(DeviceSettings::default());
    assert_eq!(decided(&replica.come(ONE, "d")), [(Outcome::Accepted, Reason::Free)]);
    let epoch = replica.record().epoch;
    for _ in 0..100 {
        let said = replica.register(ONE, token("d"));
        assert!(is_registered(&said, ONE) && said.len() == 2, "past all gates: {said:?}");
    }
    assert_eq!(replica.record().epoch, epoch, "a client cannot make it write all the time");
    replica.pass(5_000);
    replica.register(ONE, token("d"));
    assert_eq!(replica.record().events[0].what, crate::decision::Happening::Refreshed);
    let said = replica.register(ONE, token("other"));
    let error = DeviceCommand::AuthError { socket: ONE, error: AuthError::OtherDevice };
    assert_eq!((said.first(), said.len()), (Some(&error), 2), "and it stays: {said:?}");
    assert_eq!(replica.holder(), Some(ONE));
}

#[test]
fn who_does_not_register_is_closed() {
    let mut replica = Replica::wide();
    let at = replica.at();
    replica.sessions.handle_open(ONE, at).unwrap();
    assert_eq!(replica.pass(9_999), []);
    assert!(is_closed(&replica.pass(1), ONE, CloseReason::NeverRegistered));
    assert_eq!(replica.register(ONE, token("d")), [], "it was told to close");
    assert_eq!((replica.close(ONE), replica.sessions.load()), (vec![], DeviceLoad::default()));
}

#[test]
fn a_newcomer_within_the_window_is_refused_and_the_holder_untouched() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    replica.pass(1_000);
    let said = replica.come(TWO, "d");
    assert_eq!(throttled(&said), Some((ThrottleReason::SessionSettle, 1_500)));
    assert!(is_closed(&said, TWO, CloseReason::Refused));
    assert_eq!((replica.holder(), replica.record().refusals), (Some(ONE), 1));
    // Its end means nothing.
    replica.heartbeat(ONE);
    assert_eq!((replica.close(TWO), replica.pass(20_000)), (vec![], vec![]));
    let said = replica.come(THREE, "d");
    assert!(is_registered(&said, THREE) && is_closed(&said, ONE, CloseReason::Evicted));
    assert_eq!((replica.close(ONE), statuses(&replica.pass(20_000))), (vec![], vec![]));
    assert_eq!((replica.holder(), replica.record().flips), (Some(THREE), 1));
}

#[test]
fn pairing_arms_and_checks_settle() {
    let mut replica = Replica::wide();
    let at = replica.at();
    for socket in [ONE, TWO, THREE] {
        replica.sessions.handle_open(socket, at).unwrap();
    }
    let said = replica.register(ONE, pairing());
    assert_eq!((is_registered(&said, ONE), statuses(&said)), (true, vec![Status::Provisioning]));
    assert_eq!(throttled(&replica.register(TWO, pairing())), Some((ThrottleReason::SessionSettle, 2_500)));
    // Paired, it needs its token.
    let paired = replica.record().paired_with(Some("u".into()), UNIX_MS);
    replica.records.insert("d".into(), paired);
    let said = replica.register(THREE, pairing());
    assert!(said.contains(&DeviceCommand::AuthError { socket: THREE, error: AuthError::AlreadyPaired }));
    // A token that was made for whoever brought another code proves nothing, the one of its own code does.
    replica.pass(3_000);
    replica.code_of_token = Some("another's");
    let said = replica.come(SocketId(5), "d");
    assert!(said.contains(&DeviceCommand::AuthError { socket: SocketId(5), error: AuthError::BadToken }));
    replica.code_of_token = Some("code");
    assert!(is_registered(&replica.come(SocketId(6), "d"), SocketId(6)));
    replica.code_of_token = None;
    replica.pass(3_000);
    assert!(is_registered(&replica.come(SocketId(4), "d"), SocketId(4)));
    assert_eq!(replica.record().status, Status::Online);
}

#[test]
fn a_blocked_device_is_not_let_in() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    let blocked = replica.record().blocked(UNIX_MS + replica.ms);
    let at = replica.at();
    replica.sessions.handle_evict(&"d".into(), blocked.epoch, ONE, 0, at);
    replica.records.insert("d".into(), blocked);
    replica.answer();
    assert!(is_closed(&std::mem::take(&mut replica.said), ONE, CloseReason::Evicted));
    let said = replica.come(TWO, "d");
    assert!(said.contains(&DeviceCommand::AuthError { socket: TWO, error: AuthError::Blocked }));
    assert!(is_closed(&said, TWO, CloseReason::Refused));
}

#[test]
fn a_record_that_cannot_be_read_is_the_trouble_of_its_device_alone() {
    let mut replica = Replica::wide();
    replica.is_store_stuck = true;
    let said = replica.come(ONE, "d");
    let Some(op) = said.iter().find_map(|command| match command {
        DeviceCommand::Read { op, .. } => Some(*op),
        _ => None,
    }) else {
        panic!("{said:?}")
    };
    let at = replica.at();
    replica.sessions.handle_unreadable(&"d".into(), op, at);
    replica.is_store_stuck = false;
    replica.answer();
    let said = std::mem::take(&mut replica.said);
    assert_eq!(throttled(&said), Some((ThrottleReason::ReconnectRate, SHORT_RETRY_MS)));
    assert!(is_registered(&replica.come(TWO, "d"), TWO));
    assert!(replica.sessions.holder("d").is_some_and(|holder| holder.is_sure), "the store is there");
}

#[test]
fn heartbeats_count_from_the_holder_only() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    let at = replica.at();
    replica.sessions.handle_open(TWO, at).unwrap();
    let said = replica.heartbeat(TWO);
    let Some(DeviceCommand::HeartbeatRefused { socket: TWO, holder: Some(holder), .. }) = said.first() else {
        panic!("{said:?}")
    };
    assert_eq!(holder.socket, ONE);
    replica.pass(44_000);
    assert_eq!(replica.heartbeat(ONE), []);
    replica.heartbeat(TWO);
    assert_eq!(statuses(&replica.pass(44_999)), []);
    let said = replica.pass(1);
    assert_eq!((statuses(&said), decided(&said)), (vec![Status::Offline], vec![(Outcome::Offline, Reason::Silent)]));
    assert_eq!(replica.holder(), Some(ONE), "the session stays");
    assert_eq!(statuses(&replica.heartbeat(ONE)), [Status::Online]);
}

#[test]
fn offline_after_the_debounce_if_nobody_came() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    assert_eq!((replica.close(ONE), replica.holder()), (vec![], None));
    assert_eq!(statuses(&replica.pass(4_999)), []);
    assert!(is_registered(&replica.come(TWO, "d"), TWO));
    replica.heartbeat(TWO);
    assert_eq!(statuses(&replica.pass(20_000)), []);
    replica.close(TWO);
    assert_eq!(decided(&replica.pass(5_000)), [(Outcome::Offline, Reason::HolderGone)]);
    let left = replica.sessions.load();
    assert_eq!((left.devices, left.timers), (0, 0));
}

#[test]
fn beside_is_closed_later() {
    let mut replica = Replica::wide();
    replica.verdict = Some(SettleVerdict::Beside(2_000));
    replica.come(ONE, "d");
    let said = replica.come(TWO, "d");
    assert!(is_registered(&said, TWO) && !is_closed(&said, ONE, CloseReason::Evicted));
    assert!(matches!(replica.heartbeat(ONE)[..], [DeviceCommand::HeartbeatRefused { .. }]));
    assert_eq!(replica.pass(1_999), []);
    assert!(is_closed(&replica.pass(1), ONE, CloseReason::Evicted));
    assert_eq!((replica.close(ONE), replica.holder()), (vec![], Some(TWO)));
    // However many: the oldest is closed at once.
    let sockets: Vec<SocketId> = (10..16).map(SocketId).collect();
    let said: Vec<Vec<DeviceCommand>> = sockets.iter().map(|socket| replica.come(*socket, "d")).collect();
    assert!(is_closed(&said[4], TWO, CloseReason::Evicted) && is_closed(&said[5], sockets[0], CloseReason::Evicted));
}

#[test]
fn no_policy_holds_one_that_is_gone() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    replica.holds_settle = true;
    replica.come(TWO, "d");
    replica.close(ONE);
    let (at, ask) = (replica.at(), replica.asked.unwrap());
    replica.sessions.handle_verdict(&"d".into(), ask, SettleVerdict::Refuse(60_000), None, at);
    replica.answer();
    assert!(is_registered(&replica.said, TWO));
    assert_eq!((replica.holder(), replica.record().flips), (Some(TWO), 0));
}

#[test]
fn a_policy_that_does_not_answer_is_answered_for() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    replica.holds_settle = true;
    replica.come(TWO, "d");
    // Asked when the holder was new, answered by what was known then.
    assert_eq!(throttled(&replica.pass(5_000)), Some((ThrottleReason::SessionSettle, 2_500)));
    let (at, ask) = (replica.at(), replica.asked.unwrap());
    replica.sessions.handle_verdict(&"d".into(), ask, SettleVerdict::Accept, None, at);
    replica.answer();
    assert_eq!((replica.said.len(), replica.holder()), (0, Some(ONE)), "too late");
}

#[test]
fn one_at_another_replica_is_asked_about_and_evicted() {
    let alive = OwnerAnswer::Alive { age_ms: 1_000, idle_ms: 5, heartbeat_ms: 5 };
    let mut replica = Replica::wide();
    replica.held_there();
    let said = replica.come(ONE, "d");
    assert_eq!(throttled(&replica.owner_says(&said, alive)), Some((ThrottleReason::SessionSettle, 1_500)));
    let said = replica.come(TWO, "d");
    let said = replica.owner_says(&said, OwnerAnswer::Gone);
    assert!(is_registered(&said, TWO) && replica.asked == Some(OpId(3)), "settle is not asked about it");
    assert!(!said.iter().any(|command| matches!(command, DeviceCommand::EvictRemote { .. })));

    let mut replica = Replica::wide();
    replica.held_there();
    let said = replica.come(ONE, "d");
    let said = replica.owner_says(&said, OwnerAnswer::Silent);
    let is_eviction = |command: &&DeviceCommand| matches!(command, DeviceCommand::EvictRemote { .. });
    assert!(is_registered(&said, ONE) && said.iter().filter(is_eviction).count() == 1);
    // After half a second, one, two and four more.
    replica.heartbeat(ONE);
    assert_eq!(replica.pass(8_000).iter().filter(is_eviction).count(), 4);
    let (at, epoch) = (replica.at(), replica.sessions.holder("d").unwrap().epoch);
    replica.sessions.handle_evict_confirmed(&"d".into(), epoch, at);
    replica.heartbeat(ONE);
    assert_eq!(replica.pass(40_000).iter().filter(is_eviction).count(), 0);
}

#[test]
fn evictions_to_a_dead_replica_and_holders_at_it_are_moot() {
    let mut replica = Replica::wide();
    replica.held_there();
    let said = replica.come(ONE, "d");
    replica.owner_says(&said, OwnerAnswer::Silent);
    assert_eq!(replica.sessions.load().evictions, 1);
    let at = replica.at();
    replica.sessions.handle_replica_gone("there", at);
    assert_eq!(replica.sessions.load().evictions, 0);

    let mut replica = Replica::wide();
    replica.held_there();
    replica.come(ONE, "d");
    let at = replica.at();
    replica.sessions.handle_replica_gone("there", at);
    replica.answer();
    assert!(is_registered(&replica.said, ONE));
}

#[test]
fn an_eviction_closes_what_is_older() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    let (at, device) = (replica.at(), Arc::from("d"));
    let epoch = replica.sessions.holder("d").unwrap().epoch;
    replica.sessions.handle_evict(&device, epoch, ONE, 0, at);
    replica.sessions.handle_evict(&"unknown".into(), epoch, ONE, 0, at);
    replica.answer();
    assert_eq!((replica.said.len(), replica.sessions.owner_answer("d", ONE, at.now) != OwnerAnswer::Gone), (0, true));
    replica.held_there();
    replica.sessions.handle_evict(&device, epoch + 1, ONE, 700, at);
    assert_eq!(replica.sessions.owner_answer("d", ONE, at.now), OwnerAnswer::Gone);
    replica.answer();
    assert_eq!(decided(&replica.said), [(Outcome::Evicted, Reason::Superseded)]);
    assert!(is_closed(&replica.pass(700), ONE, CloseReason::Evicted));
    replica.close(ONE);
    assert_eq!((replica.pass(20_000), replica.sessions.load().devices), (vec![], 0), "and arms nothing");
}

#[test]
fn while_the_store_is_away_newcomers_are_decided_here() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    replica.is_store_away = true;
    assert_eq!(throttled(&replica.come(TWO, "d")), Some((ThrottleReason::SessionSettle, 2_500)));
    assert_eq!(decided(&replica.come(SocketId(100), "d100")), [(Outcome::Accepted, Reason::Provisional)]);
    let at = replica.at();
    replica.sessions.handle_open(THREE, at).unwrap();
    let unproven = Registration { device: Some("d200".into()), ..pairing() };
    assert_eq!(throttled(&replica.register(THREE, unproven)), Some((ThrottleReason::ReconnectRate, 1_000)));
    replica.heartbeat(ONE);
    replica.pass(20_000);
    assert!(!replica.sessions.holder("d100").unwrap().is_sure);
    replica.is_store_away = false;
    let said = replica.pass(1_000);
    assert_eq!(decided(&said), [(Outcome::Accepted, Reason::Reconciled)]);
    assert!(replica.sessions.holder("d100").unwrap().is_sure && replica.records.contains_key("d100"));
    // An emptied store is filled again.
    replica.records.clear();
    let at = replica.at();
    replica.sessions.handle_store_back(at);
    replica.answer();
    assert_eq!((replica.holder(), replica.records.len()), (Some(ONE), 2));
}

#[test]
fn a_newer_one_in_the_record_takes_the_session() {
    for (answer, is_kept) in [(OwnerAnswer::Silent, false), (OwnerAnswer::Gone, true)] {
        let mut replica = Replica::wide();
        replica.come(ONE, "d");
        replica.pass(10_000);
        replica.held_there();
        let said = replica.register(ONE, token("d"));
        let said = replica.owner_says(&said, answer);
        assert_eq!(is_closed(&said, ONE, CloseReason::Evicted), !is_kept, "{answer:?}");
        assert_eq!(throttled(&said).is_none(), is_kept);
        assert_eq!(replica.holder().is_some(), is_kept);
    }
}

#[test]
fn an_orphan_is_said_to_be_offline() {
    let mut replica = Replica::wide();
    replica.held_there();
    let at = replica.at();
    replica.sessions.handle_orphan(&"d".into(), "there".into(), at);
    assert_eq!(statuses(&replica.pass(4_999)), []);
    assert_eq!(statuses(&replica.pass(1)), [Status::Offline]);
    let record = replica.record();
    assert_eq!((record.holder.is_none(), record.ended.unwrap().how), (true, Departure::ReplicaLost));
    assert_eq!(replica.sessions.load(), DeviceLoad::default());
}

/// A replica where the device went 3 s ago; it came back elsewhere.
fn moved_from_here() -> Replica {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    replica.close(ONE);
    replica.pass(3_000);
    replica.held_there();
    replica
}

#[test]
fn one_that_came_back_elsewhere_and_went_again_is_debounced_anew() {
    let mut replica = moved_from_here();
    replica.pass(1_000);
    let unix_ms = UNIX_MS + replica.ms;
    replica.records.insert("d".into(), replica.record().released(Departure::TransportLost, unix_ms));
    assert_eq!(statuses(&replica.pass(5_999)), [], "that is the other replica's to say, which has until then");
    assert_eq!(statuses(&replica.pass(1)), [Status::Offline], "it did not live to say so");
    let left = replica.sessions.load();
    assert_eq!((left.devices, left.timers), (0, 0));
}

#[test]
fn an_orphan_is_debounced_from_its_replicas_end_on() {
    let mut replica = moved_from_here();
    for at in [0, 1_000] {
        replica.pass(at);
        let at = replica.at();
        replica.sessions.handle_orphan(&"d".into(), "there".into(), at);
    }
    assert_eq!(statuses(&replica.pass(3_999)), []);
    assert_eq!(statuses(&replica.pass(1)), [Status::Offline]);
    let left = replica.sessions.load();
    assert_eq!((left.devices, left.timers), (0, 0));
}

#[test]
fn every_table_has_a_bound() {
    let settings = DeviceSettings { sockets_max: 20, devices_max: 2, ..Replica::wide().sessions.settings };
    let mut replica = Replica::new(settings);
    replica.is_store_stuck = true;
    for socket in 0..9 {
        assert_eq!(throttled(&replica.come(SocketId(socket), "d")), None);
    }
    let said = replica.come(SocketId(9), "d");
    assert_eq!(throttled(&said), Some((ThrottleReason::ReconnectRate, SHORT_RETRY_MS)));
    assert_eq!((decided(&said), replica.sessions.load().queued), (vec![(Outcome::Refused, Reason::Busy)], 8));
    replica.come(SocketId(100), "d100");
    assert_eq!(decided(&replica.come(SocketId(101), "d101")), [(Outcome::Refused, Reason::Full)]);
    let at = replica.at();
    for socket in 200..208 {
        replica.sessions.handle_open(SocketId(socket), at).unwrap();
    }
    assert_eq!(replica.sessions.handle_open(SocketId(208), at), Err(TooManySockets));
    // The store never answers: each is answered all the same.
    let said = replica.pass(60_000);
    let answered = said
        .iter()
        .filter(|command| matches!(command, DeviceCommand::Registered { .. } | DeviceCommand::Throttled { .. }));
    assert_eq!(answered.count(), 10);
}
