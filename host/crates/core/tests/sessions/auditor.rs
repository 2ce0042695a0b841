//! Checks the named invariants by what can be seen from outside: what the sockets were told, what the store was made to hold,
//! and which sockets the replicas take for holders.

use std::collections::BTreeMap;
use std::sync::Arc;

use pointwork_core::devices::{
    AuthError, CloseReason, DeviceCommand, DeviceRecord, DeviceStatus, LocalHolder, SessionEvent, SessionOutcome,
    SessionReason, ThrottleReason,
};
use pointwork_core::{SocketId, decision::Happening};

use crate::clients::{Believed, Client};
use crate::ledger::Ledger;

/// How long after the store was in trouble its record may not be the truth: every step may have waited in vain.
const TROUBLE_US: u64 = 20_000_000;

#[derive(Default)]
pub(crate) struct Auditor {
    ledger: BTreeMap<SocketId, Entry>,
    /// When a socket of the device was last in place.
    in_place: BTreeMap<Arc<str>, Vec<(SocketId, u64)>>,
    /// The greatest epoch by which a socket of the device was accepted.
    accepted: BTreeMap<Arc<str>, u64>,
    /// What dashboards show: the status with the greatest epoch.
    pub(crate) dashboards: BTreeMap<Arc<str>, (u64, DeviceStatus)>,
    /// Each change of what dashboards show, with its moment.
    pub(crate) shown: Vec<(Arc<str>, u64, DeviceStatus)>,
    /// When the store was last away, or may have been.
    pub(crate) trouble_us: Option<u64>,
    pub(crate) heartbeat_timeout_us: u64,
    pub(crate) offline_debounce_us: u64,
    /// What is written is an operator's change.
    pub(crate) is_operating: bool,
    /// When a replica last took a socket of the device for the holder, and knew that the record said so.
    held_us: BTreeMap<Arc<str>, u64>,
    pub(crate) ledger_of_trials: Ledger,
    /// What happened, for the proof that a simulation reaches everything.
    pub(crate) ends: BTreeMap<String, usize>,
}

#[derive(Default)]
struct Entry {
    arrived_us: Option<u64>,
    refreshes: usize,
    is_checked: bool,
    /// It proved a token, or brought a pairing code.
    is_proved: bool,
    is_registered: bool,
    is_refused: bool,
    is_told_to_close: bool,
}

impl Auditor {
    pub(crate) fn registers(&mut self, socket: SocketId, is_pairing: bool, now_us: u64) {
        let entry = self.ledger.entry(socket).or_default();
        if entry.is_refused || entry.is_told_to_close {
            return;
        }
        if entry.is_registered {
            entry.refreshes += 1;
        } else if entry.arrived_us.is_none() {
            entry.arrived_us = Some(now_us);
            entry.is_proved = is_pairing;
        }
    }

    pub(crate) fn proves(&mut self, socket: SocketId) {
        self.ledger.entry(socket).or_default().is_proved = true;
    }

    pub(crate) fn closes(&mut self, socket: SocketId) {
        self.ledger.remove(&socket);
    }

    /// A command of a replica. `record` is what the store holds of the socket's device.
    pub(crate) fn hear(
        &mut self,
        command: &DeviceCommand,
        record: impl Fn(SocketId) -> Option<DeviceRecord>,
        now_us: u64,
    ) {
        match command {
            DeviceCommand::CheckToken { socket, .. } => {
                let entry = self.ledger.entry(*socket).or_default();
                assert!(
                    entry.arrived_us.is_some() && !entry.is_checked,
                    "order-of-gates: checked twice, or for nothing"
                );
                entry.is_checked = true;
            }
            DeviceCommand::AskSettle { socket, history, .. } => {
                assert!(history.len() <= 16);
                assert!(
                    self.entry(*socket).is_none_or(|entry| entry.is_proved),
                    "order-of-gates: settle before the token"
                );
            }
            DeviceCommand::Registered { socket, .. } => self.hear_registered(*socket),
            DeviceCommand::Throttled { socket, reason, retry_after_ms } => {
                assert!(*retry_after_ms > 0, "come back when?");
                self.hear_refused(*socket, *reason == ThrottleReason::ReconnectRate);
            }
            DeviceCommand::AuthError { error: AuthError::OtherDevice, .. } => {}
            DeviceCommand::AuthError { socket, error } => {
                let is_said_early = matches!(error, AuthError::Missing | AuthError::BadToken);
                self.hear_refused(*socket, !is_said_early);
            }
            DeviceCommand::Close { socket, why } => {
                self.count(format!("closed {why:?}"));
                let is_in_trouble = self.is_in_trouble(now_us);
                let Some(entry) = self.ledger.get_mut(socket) else { return };
                entry.is_told_to_close = true;
                if *why == CloseReason::Evicted && entry.is_registered && !is_in_trouble {
                    let is_named =
                        record(*socket).and_then(|record| record.holder).is_some_and(|one| one.socket == *socket);
                    assert!(!is_named, "one-holder: {socket:?} was evicted while the record named it");
                }
            }
            DeviceCommand::Status { device, status, epoch, .. } => {
                let shown = self.dashboards.entry(device.clone()).or_default();
                if *epoch >= shown.0 {
                    *shown = (*epoch, *status);
                    self.shown.push((device.clone(), now_us, *status));
                }
                self.count(format!("status {status:?}"));
            }
            DeviceCommand::Event(event) => self.hear_event(event, now_us),
            DeviceCommand::Read { .. }
            | DeviceCommand::AskOwner { .. }
            | DeviceCommand::Swap { .. }
            | DeviceCommand::EvictRemote { .. }
            | DeviceCommand::HeartbeatRefused { .. } => {}
        }
    }

    fn hear_registered(&mut self, socket: SocketId) {
        let Some(entry) = self.ledger.get_mut(&socket) else { return };
        assert!(!entry.is_refused && !entry.is_told_to_close, "registered after it was refused");
        if entry.arrived_us.take().is_some() {
            assert!(entry.is_proved, "order-of-gates: registered without proof");
            entry.is_registered = true;
        } else {
            assert!(entry.is_registered && entry.refreshes > 0, "every-register-answered: twice");
            entry.refreshes -= 1;
        }
    }

    fn hear_refused(&mut self, socket: SocketId, needs_proof: bool) {
        let Some(entry) = self.ledger.get_mut(&socket) else { return };
        assert!(!entry.is_refused, "every-register-answered: refused twice");
        // One that had the session and lost it is told so, too.
        assert!(entry.arrived_us.is_some() || entry.is_registered, "every-register-answered: refused for nothing");
        assert!(entry.is_proved || !needs_proof, "order-of-gates: a later gate before the token");
        entry.is_refused = true;
    }

    fn hear_event(&mut self, event: &SessionEvent, now_us: u64) {
        self.count(format!("{:?} {:?}", event.outcome, event.reason));
        let (Some(device), Some(socket)) = (&event.device, event.socket) else { return };
        let Some(entry) = self.ledger.get_mut(&socket) else { return };
        let arrived_us = entry.arrived_us.take_if(|_| event.outcome == SessionOutcome::Refused);
        if event.reason == SessionReason::Settled && event.outcome == SessionOutcome::Refused {
            let arrived_us = arrived_us.unwrap_or(now_us);
            let others = self.in_place.get(device).into_iter().flatten();
            let is_held = others.into_iter().any(|(other, at)| *other != socket && *at >= arrived_us);
            assert!(is_held, "not-stranded: {socket:?} was refused in favour of nobody");
        }
    }

    /// The store took a record. `believed` are the sockets that replicas take for holders of the device.
    pub(crate) fn written(
        &mut self,
        device: &Arc<str>,
        old: &DeviceRecord,
        new: &DeviceRecord,
        believed: &[Believed],
        clients: &BTreeMap<SocketId, Client>,
        now_us: u64,
    ) {
        assert!(new.epoch > old.epoch, "epoch-grows: {device} {} -> {}", old.epoch, new.epoch);
        assert!(new.events.len() <= 16);
        let accepted = self.accepted.entry(device.clone()).or_default();
        *accepted = new.holder.as_ref().map_or(*accepted, |holder| holder.epoch.max(*accepted));
        if new.refusals > old.refusals {
            let is_same =
                (&new.holder, new.status, &new.ended, new.flips) == (&old.holder, old.status, &old.ended, old.flips);
            assert!(is_same && new.events[0].what == Happening::Refused, "refusal-is-harmless: {device}");
        }
        if new.status != DeviceStatus::Offline || old.status == DeviceStatus::Offline || self.is_operating {
            return;
        }
        match &new.holder {
            Some(holder) => {
                let client = clients.get(&holder.socket);
                let is_silent =
                    client.is_none_or(|client| client.longest_silence_us(now_us) >= self.heartbeat_timeout_us);
                assert!(is_silent, "no-false-offline: {device} is held by {:?}", holder.socket);
            }
            // One that was accepted while its replica did not see the record is not known to others that do; one that lost
            // the session may not have heard of it yet.
            None => {
                let is_held = believed.iter().any(|one| one.holder.is_sure && one.holder.epoch >= *accepted);
                assert!(!is_held, "no-false-offline: {device} is offline beside {believed:?}");
                let away_us = self.held_us.get(device).map(|at| now_us - at);
                let is_debounced = away_us.is_none_or(|away_us| away_us >= self.offline_debounce_us);
                assert!(
                    is_debounced || self.is_in_trouble(now_us),
                    "debounced: {device} is offline after {away_us:?} us"
                );
            }
        }
    }

    /// After every step, of each device.
    pub(crate) fn check(
        &mut self,
        device: &Arc<str>,
        record: &DeviceRecord,
        believed: &[Believed],
        named: Option<SocketId>,
        now_us: u64,
    ) {
        let is_named = |one: &Believed| record.is_held_by(&one.replica, one.holder.socket);
        if believed.iter().any(|one| one.holder.is_sure && is_named(one)) {
            self.held_us.insert(device.clone(), now_us);
        }
        let sure: Vec<&LocalHolder> = believed.iter().map(|one| &one.holder).filter(|holder| holder.is_sure).collect();
        for one in believed.iter().filter(|one| one.holder.is_sure && !is_named(one)) {
            let is_superseded = one.holder.epoch < record.epoch;
            assert!(is_superseded || self.is_in_trouble(now_us), "one-holder: {one:?} beside {record:?}");
        }
        for (index, holder) in sure.iter().enumerate() {
            let is_alone = sure[..index].iter().all(|other| other.epoch != holder.epoch);
            assert!(is_alone || self.is_in_trouble(now_us), "one-holder: two of one epoch");
        }
        let places = self.in_place.entry(device.clone()).or_default();
        places.retain(|(_, at)| now_us - at < 60_000_000);
        for socket in believed.iter().map(|one| one.holder.socket).chain(named) {
            match places.iter_mut().find(|(known, _)| *known == socket) {
                Some((_, at)) => *at = now_us,
                None => places.push((socket, now_us)),
            }
        }
    }

    /// After every step, of each device: its trial counts what the ledger counts.
    pub(crate) fn check_trial(&mut self, device: &Arc<str>, record: &DeviceRecord, now_ms: u64) {
        let is_calm = self.trouble_us.is_none();
        let Some(over) = self.ledger_of_trials.check(device, record, is_calm, now_ms) else { return };
        let reached = [
            (true, "over"),
            (over.flips > 0, "with flips"),
            (over.refused > 0, "with refusals"),
            (over.failures > 0, "with failures"),
            (over.stranded_ms > 0, "stranded"),
            (over.offline_ms > 0, "offline"),
            (over.is_stable && over.stable_ms > 0, "stable"),
        ];
        for (_, what) in reached.into_iter().filter(|(is_reached, _)| *is_reached) {
            self.count(format!("trial {what}"));
        }
    }

    /// What was told to close was told why, and what was refused was told to close; after every step.
    pub(crate) fn check_told(&self) {
        for (socket, entry) in &self.ledger {
            assert!(!entry.is_refused || entry.is_told_to_close, "a refused newcomer, {socket:?}, is not closed");
        }
    }

    /// When all is quiet: every register was answered.
    pub(crate) fn check_answered(&self) {
        for (socket, entry) in &self.ledger {
            assert!(entry.arrived_us.is_none(), "every-register-answered: {socket:?} was not");
            assert_eq!(entry.refreshes, 0, "every-register-answered: {socket:?} was not, again");
        }
    }

    pub(crate) fn is_registered(&self, socket: SocketId) -> bool {
        self.entry(socket).is_some_and(|entry| entry.is_registered && !entry.is_told_to_close)
    }

    pub(crate) fn is_in_trouble(&self, now_us: u64) -> bool {
        self.trouble_us.is_some_and(|at| now_us - at < TROUBLE_US)
    }

    pub(crate) fn count(&mut self, what: String) {
        *self.ends.entry(what).or_default() += 1;
    }

    fn entry(&self, socket: SocketId) -> Option<&Entry> {
        self.ledger.get(&socket)
    }
}
