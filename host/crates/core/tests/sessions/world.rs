//! The world around the machines: replicas, the store, the network between them, sockets; in simulated time.
//!
//! Everything that happens is in one queue by its moment. Between two of them no time passes; after each, what the machines
//! want done is put into the queue, with delays drawn from the seed, and the auditor looks at everything.

mod happenings;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use pointwork_core::decisions::{Departure, Incumbent, Liveness, SettleVerdict};
use pointwork_core::devices::{
    CloseReason, DeviceCommand, DeviceRecord, DeviceSessions, DeviceSettings, DeviceStatus, Moment, OpId, OwnerAnswer,
    Proof, RegisterId, StoreAway, SwapResult,
};
use pointwork_core::experiments::{Experiment, Exposure, Trial};
use pointwork_core::{SocketId, Time, rules};

use crate::auditor::Auditor;
use crate::clients::{Believed, Brings, Client};
use crate::happening::{Happening, Operator};
use crate::seeded::Random;
use crate::store::Store;

/// The wall clock when the world began.
const EPOCH_MS: u64 = 1_800_000_000_000;
const TRACE_MAX: usize = 300;
pub(crate) const MS: u64 = 1_000;
pub(crate) const SECOND: u64 = 1_000_000;

/// What is broken on purpose, to see that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutation {
    SwapWithoutEpoch,
    EvictBeforeWon,
    EvictedArmsOffline,
    RefuseForTheDead,
    NewcomerNotClosed,
}

/// What goes wrong now and then.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// One message in so many between replicas is lost; 0: none.
    pub(crate) loss: u64,
    /// One step in so many is slow; 0: none.
    pub(crate) slow: u64,
    /// One answer of the store in so many comes when nobody waits for it any more; 0: none.
    pub(crate) stuck: u64,
    /// One proof or verdict in so many never comes; 0: none.
    pub(crate) unanswered: u64,
    /// The policy says anything, not the native rule.
    pub(crate) any_verdict: bool,
}

pub(crate) struct Replica {
    pub(crate) uid: Arc<str>,
    pub(crate) machine: DeviceSessions,
    pub(crate) is_alive: bool,
    started_us: u64,
    /// Its wall clock against the others', in milliseconds.
    skew_ms: u64,
}

pub(crate) struct World {
    pub(crate) random: Random,
    pub(crate) now_us: u64,
    queue: BTreeMap<(u64, u64), Happening>,
    last_seq: u64,
    pub(crate) settings: DeviceSettings,
    pub(crate) faults: Faults,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) store: Store,
    pub(crate) clients: BTreeMap<SocketId, Client>,
    last_socket: u128,
    /// Those that a socket was opened for.
    devices: BTreeSet<Arc<str>>,
    pub(crate) auditor: Auditor,
    pub(crate) mutation: Option<Mutation>,
    /// What runs in `settle`.
    pub(crate) experiment: Option<Experiment>,
    /// The last happenings, for a failure's message.
    pub(crate) trace: VecDeque<String>,
}

impl World {
    pub(crate) fn new(seed: u64, replicas: usize, settings: DeviceSettings) -> World {
        let mut auditor = Auditor::default();
        auditor.heartbeat_timeout_us = u64::from(settings.heartbeat_timeout_ms) * MS;
        auditor.offline_debounce_us = u64::from(settings.offline_debounce_ms) * MS;
        let mut world = World {
            random: Random::new(seed),
            now_us: 0,
            queue: BTreeMap::new(),
            last_seq: 0,
            settings,
            faults: Faults::default(),
            replicas: Vec::new(),
            store: Store::default(),
            clients: BTreeMap::new(),
            last_socket: 0,
            devices: BTreeSet::new(),
            auditor,
            mutation: None,
            experiment: None,
            trace: VecDeque::new(),
        };
        for _ in 0..replicas {
            world.start_replica();
        }
        world
    }

    pub(crate) fn start_replica(&mut self) {
        let uid: Arc<str> = format!("r{}", self.replicas.len()).into();
        let machine = DeviceSessions::new(uid.clone(), self.settings);
        let skew_ms = self.random.below(40);
        self.replicas.push(Replica { uid, machine, is_alive: true, started_us: self.now_us, skew_ms });
    }

    pub(crate) fn at(&mut self, at_us: u64, happening: Happening) {
        self.last_seq += 1;
        self.queue.insert((at_us.max(self.now_us), self.last_seq), happening);
    }

    pub(crate) fn after(&mut self, delay_us: u64, happening: Happening) {
        self.at(self.now_us + delay_us, happening);
    }

    /// A new socket, which opens and registers at a moment.
    pub(crate) fn open(&mut self, at_us: u64, replica: usize, device: &Arc<str>, brings: Brings) -> SocketId {
        self.last_socket += 1;
        let socket = SocketId(self.last_socket);
        let heartbeats = true;
        self.devices.insert(device.clone());
        self.at(at_us, Happening::Open { socket, replica, device: device.clone(), brings, heartbeats });
        self.at(at_us + 100, Happening::Register { socket });
        socket
    }

    /// Of two sockets that are yet to open one will give no heartbeat, and the other never register.
    pub(crate) fn make_silent(&mut self, silent: SocketId, never: SocketId) {
        for happening in self.queue.values_mut() {
            match happening {
                Happening::Open { socket, heartbeats, .. } if *socket == silent => *heartbeats = false,
                _ => {}
            }
        }
        self.queue.retain(|_, happening| !matches!(happening, Happening::Register { socket } if *socket == never));
    }

    /// Runs until a moment.
    pub(crate) fn run_until(&mut self, until_us: u64) {
        loop {
            let next = self.queue.first_key_value().map(|((at, _), _)| *at);
            let wake = (0..self.replicas.len()).filter_map(|index| Some((self.wake_us(index)?, index))).min();
            match (next, wake) {
                (Some(at), _) if at <= until_us && wake.is_none_or(|(wake, _)| at <= wake) => {
                    let Some((_, happening)) = self.queue.pop_first() else { return };
                    self.now_us = at;
                    self.step(happening);
                }
                (_, Some((wake, index))) if wake <= until_us => {
                    self.now_us = self.now_us.max(wake);
                    self.step(Happening::Timeout { replica: index });
                }
                _ => break,
            }
        }
        self.now_us = self.now_us.max(until_us);
    }

    fn wake_us(&self, index: usize) -> Option<u64> {
        let replica = &self.replicas[index];
        let at = replica.machine.poll_timeout().filter(|_| replica.is_alive)?;
        Some(replica.started_us + at.as_micros())
    }

    pub(crate) fn step(&mut self, happening: Happening) {
        self.note(format!("{:>12} µs  {happening:?}", self.now_us));
        self.happen(happening);
        for index in 0..self.replicas.len() {
            while let Some(command) = self.replicas[index].machine.next_command() {
                if self.replicas[index].is_alive {
                    self.carry_out(index, command);
                }
            }
        }
        self.auditor.check_told();
        for device in self.devices.clone() {
            let (record, believed) = (self.store.read(&device), self.believed(&device));
            // One whose replica waits for the news that it was accepted is in place, too.
            let named = record.holder.as_ref().map(|holder| holder.socket).filter(|one| self.clients.contains_key(one));
            self.auditor.check(&device, &record, &believed, named, self.now_us);
            self.auditor.check_trial(&device, &record, EPOCH_MS + self.now_us / MS);
        }
    }

    fn note(&mut self, line: String) {
        if self.trace.len() == TRACE_MAX {
            self.trace.pop_front();
        }
        self.trace.push_back(line);
    }

    pub(crate) fn moment(&self, index: usize) -> Moment {
        let replica = &self.replicas[index];
        let unix_ms = EPOCH_MS + self.now_us / MS + replica.skew_ms;
        Moment { now: Time::from_micros(self.now_us - replica.started_us), unix_ms }
    }

    /// The sockets that living replicas take for holders of a device, and that are open there.
    pub(crate) fn believed(&self, device: &str) -> Vec<Believed> {
        let alive = self.replicas.iter().filter(|replica| replica.is_alive);
        alive
            .filter_map(|replica| {
                let holder = replica.machine.holder(device)?;
                Some(Believed { replica: replica.uid.clone(), holder })
            })
            .collect()
    }

    pub(crate) fn index_of(&self, uid: &str) -> Option<usize> {
        self.replicas.iter().position(|replica| *replica.uid == *uid)
    }

    fn delay(&mut self) -> u64 {
        if self.faults.slow > 0 && self.random.once_in(self.faults.slow) {
            return self.random.below(900_000);
        }
        200 + self.random.below(2_000)
    }

    fn is_lost(&mut self) -> bool {
        self.faults.loss > 0 && self.random.once_in(self.faults.loss)
    }

    fn carry_out(&mut self, index: usize, command: DeviceCommand) {
        self.note(format!("{:>15} {} {command:?}", "", self.replicas[index].uid));
        let (clients, store) = (&self.clients, &self.store);
        let record = |socket| clients.get(&socket).map(|client| store.read(&client.device));
        let is_forgotten = self.mutation == Some(Mutation::NewcomerNotClosed)
            && matches!(&command, DeviceCommand::Close { why: CloseReason::Refused, .. });
        if is_forgotten {
            return;
        }
        self.auditor.hear(&command, record, self.now_us);
        let delay = self.delay();
        match command {
            DeviceCommand::CheckToken { socket, register } => self.check_token(index, socket, register),
            DeviceCommand::Read { device, op } => self.after(delay, Happening::Read { replica: index, device, op }),
            DeviceCommand::Swap { device, op, expected, record } => {
                self.evict_too_early(&device, &record);
                self.after(delay, Happening::Swap { replica: index, device, op, expected, record });
            }
            DeviceCommand::AskOwner { device, op, replica: uid, socket } => {
                let lost = self.is_lost();
                let happening = Happening::AskOwner { replica: index, device, op, uid, socket, is_lost: lost };
                self.after(delay, happening);
            }
            DeviceCommand::AskSettle { device, op, window_ms, incumbent, trial, pinned, .. } => {
                assert!(incumbent.liveness != Liveness::Gone, "not-stranded: asked about one that is gone");
                let verdict = self.verdict(window_ms, &incumbent);
                let exposure = self.exposure(index, &device, op, trial.as_deref(), pinned.as_deref());
                if !self.is_unanswered() {
                    self.after(delay / 2, Happening::Verdict { replica: index, device, op, verdict, exposure });
                }
            }
            DeviceCommand::Close { socket, why } => {
                let delay = self.random.below(3_000);
                self.after(delay, Happening::Closed { socket, how: Departure::Evicted });
                if why == CloseReason::Evicted
                    && self.mutation == Some(Mutation::EvictedArmsOffline)
                    && let Some(client) = self.clients.get(&socket)
                {
                    let device = client.device.clone();
                    self.after(delay + 5 * SECOND, Happening::FalseOffline { device });
                }
            }
            DeviceCommand::EvictRemote { device, epoch, replica: uid, socket, after_ms } => {
                if !self.is_lost() {
                    self.after(delay, Happening::Evict { from: index, device, epoch, uid, socket, after_ms });
                }
            }
            DeviceCommand::Registered { .. }
            | DeviceCommand::Throttled { .. }
            | DeviceCommand::AuthError { .. }
            | DeviceCommand::HeartbeatRefused { .. }
            | DeviceCommand::Status { .. }
            | DeviceCommand::Event(_) => {}
        }
    }

    /// What the policy answers: the native rule, or anything.
    fn verdict(&mut self, window_ms: u32, incumbent: &Incumbent) -> SettleVerdict {
        let native = rules::settle(window_ms, incumbent);
        let is_any = self.faults.any_verdict && incumbent.liveness == Liveness::Alive;
        if is_any {
            let refuse_ms = self.random.pick(&[0, 1, 900]);
            let any = [SettleVerdict::Accept, SettleVerdict::Refuse(refuse_ms), SettleVerdict::Beside(1_500), native];
            self.random.pick(&any)
        } else {
            native
        }
    }

    /// The arm that decides for a device, which is in one of the two for good; a decision fails now and then.
    fn exposure(
        &self,
        index: usize,
        device: &str,
        op: OpId,
        trial: Option<&Trial>,
        pinned: Option<&Exposure>,
    ) -> Option<Exposure> {
        let experiment = self.experiment.as_ref()?;
        let arm = experiment.arm_for(device, trial, pinned, self.moment(index).unix_ms)?;
        assert_eq!(arm, experiment.arm_of(device), "its weights do not change");
        experiment.exposure(arm, op.0.is_multiple_of(7))
    }

    fn is_unanswered(&mut self) -> bool {
        self.faults.unanswered > 0 && self.random.once_in(self.faults.unanswered)
    }

    fn check_token(&mut self, index: usize, socket: SocketId, register: RegisterId) {
        let Some(client) = self.clients.get(&socket) else { return };
        let is_good = matches!(client.brings, Brings::GoodToken | Brings::OnlyToken);
        if !self.is_unanswered() {
            let delay = self.delay() / 2;
            self.after(delay, Happening::Proof { replica: index, socket, register, is_good });
        }
    }

    /// A mutation: the holder is evicted as soon as another one may get the session.
    fn evict_too_early(&mut self, device: &Arc<str>, record: &DeviceRecord) {
        let named = self.store.read(device).holder;
        if self.mutation == Some(Mutation::EvictBeforeWon)
            && let (Some(old), Some(new)) = (named, &record.holder)
            && (&old.replica, old.socket) != (&new.replica, new.socket)
            && let Some(index) = self.index_of(&old.replica)
        {
            self.carry_out(index, DeviceCommand::Close { socket: old.socket, why: CloseReason::Evicted });
        }
    }
}
