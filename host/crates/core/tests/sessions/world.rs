//! The world around the machines: replicas, the store, the network between them, sockets; in simulated time.
//!
//! Everything that happens is in one queue by its moment. Between two of them no time passes; after each, what the machines
//! want done is put into the queue, with delays drawn from the seed, and the auditor looks at everything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use pointwork_core::decision::{Departure, Liveness, SettleVerdict};
use pointwork_core::device::{
    CloseReason, DeviceCommand, DeviceSettings, Moment, OpId, OwnerAnswer, Proof, Record, RegisterId, Sessions, Status,
    StoreAway, Swapped,
};
use pointwork_core::experiment::{Experiment, Exposure, Trial};
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
    pub(crate) machine: Sessions,
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
        let machine = Sessions::new(uid.clone(), self.settings);
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
                let native = rules::settle(window_ms, &incumbent);
                let is_any = self.faults.any_verdict && incumbent.liveness == Liveness::Alive;
                let verdict = if is_any {
                    let refuse_ms = self.random.pick(&[0, 1, 900]);
                    let any =
                        [SettleVerdict::Accept, SettleVerdict::Refuse(refuse_ms), SettleVerdict::Beside(1_500), native];
                    self.random.pick(&any)
                } else {
                    native
                };
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
    fn evict_too_early(&mut self, device: &Arc<str>, record: &Record) {
        let named = self.store.read(device).holder;
        if self.mutation == Some(Mutation::EvictBeforeWon)
            && let (Some(old), Some(new)) = (named, &record.holder)
            && (&old.replica, old.socket) != (&new.replica, new.socket)
            && let Some(index) = self.index_of(&old.replica)
        {
            self.carry_out(index, DeviceCommand::Close { socket: old.socket, why: CloseReason::Evicted });
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Timeout { replica } => {
                let at = self.moment(replica);
                self.replicas[replica].machine.handle_timeout(at);
            }
            Happening::Open { socket, replica, device, brings, heartbeats } => {
                if self.replicas[replica].is_alive {
                    let at = self.moment(replica);
                    let client = Client::new(replica, device, brings, heartbeats, self.now_us);
                    self.clients.insert(socket, client);
                    let taken = self.replicas[replica].machine.handle_open(socket, at);
                    assert_eq!(taken, Ok(()));
                    self.after(4 * SECOND, Happening::Tick { socket });
                }
            }
            Happening::Register { socket } => self.register(socket),
            Happening::Tick { socket } => self.tick(socket),
            Happening::HalfOpen { socket } => {
                if let Some(client) = self.clients.get_mut(&socket) {
                    client.is_alive = false;
                    *self.auditor.ledger_of_trials.half_open_ms.entry(client.device.clone()).or_default() += 20_000;
                    self.after(20 * SECOND, Happening::Closed { socket, how: Departure::TransportLost });
                    self.auditor.count("half-open".into());
                }
            }
            Happening::Closed { socket, how } => {
                let Some(client) = self.clients.remove(&socket) else { return };
                self.auditor.closes(socket);
                let at = self.moment(client.replica);
                if self.replicas[client.replica].is_alive {
                    self.replicas[client.replica].machine.handle_close(socket, how, at);
                }
            }
            Happening::Proof { replica, socket, register, is_good } => self.proof(replica, socket, register, is_good),
            Happening::Verdict { replica, device, op, verdict, exposure } => {
                let at = self.moment(replica);
                self.replicas[replica].machine.handle_verdict(&device, op, verdict, exposure, at);
            }
            Happening::Read { .. }
            | Happening::ReadDone { .. }
            | Happening::Swap { .. }
            | Happening::SwapDone { .. } => {
                self.store_happens(happening);
            }
            Happening::AskOwner { .. } | Happening::OwnerSays { .. } => self.owner_happens(happening),
            Happening::Evict { from, device, epoch, uid, socket, after_ms } => {
                let Some(index) = self.index_of(&uid) else { return };
                if self.is_known_dead(index) {
                    // The host that is to say it knows.
                    let at = self.moment(from);
                    return self.replicas[from].machine.handle_replica_gone(&uid, at);
                }
                if !self.replicas[index].is_alive {
                    return;
                }
                let at = self.moment(index);
                self.replicas[index].machine.handle_evict(&device, epoch, socket, after_ms, at);
                if !self.is_lost() {
                    let delay = self.delay();
                    self.after(delay, Happening::EvictConfirmed { replica: from, device, epoch });
                }
            }
            Happening::EvictConfirmed { replica, device, epoch } => {
                let at = self.moment(replica);
                self.replicas[replica].machine.handle_evict_confirmed(&device, epoch, at);
                self.auditor.count("eviction confirmed".into());
            }
            Happening::FalseOffline { device } => {
                let record = self.store.read(&device);
                self.write(&device, record.touched(Status::Offline, false, 0, EPOCH_MS + self.now_us / MS));
            }
            Happening::Kill { .. } | Happening::DeadKnown { .. } | Happening::Restart => {
                self.replica_happens(happening)
            }
            Happening::StoreAway | Happening::StoreBack { .. } | Happening::StoreSaidBack { .. } => {
                self.trouble_happens(happening);
            }
            Happening::Operate { device, operator } => self.operate(&device, operator),
        }
    }

    fn register(&mut self, socket: SocketId) {
        let Some(client) = self.clients.get(&socket).filter(|client| client.is_alive) else { return };
        let (replica, registration) = (client.replica, client.registration(socket));
        let at = self.moment(replica);
        if self.replicas[replica].is_alive {
            self.auditor.registers(socket, client.brings == Brings::Pairing, self.now_us);
            self.replicas[replica].machine.handle_register(socket, registration, at);
        }
    }

    /// Every few seconds: a packet, and mostly a heartbeat.
    fn tick(&mut self, socket: SocketId) {
        let Some(client) = self.clients.get(&socket).filter(|client| client.is_alive) else { return };
        let (replica, device, heartbeats) = (client.replica, client.device.clone(), client.heartbeats);
        if !self.replicas[replica].is_alive {
            return;
        }
        let at = self.moment(replica);
        let machine = &mut self.replicas[replica].machine;
        machine.handle_packet(socket, at);
        if heartbeats {
            machine.handle_heartbeat(socket, &device, at);
            let is_holder = machine.holder(&device).is_some_and(|holder| holder.socket == socket);
            let now_us = self.now_us;
            if let Some(client) = self.clients.get_mut(&socket).filter(|_| is_holder) {
                client.heartbeat(now_us);
            }
        }
        if self.settings.evictions_max == 0 && (self.now_us / (4 * SECOND)).is_multiple_of(4) {
            // What was evicted in vain finds it out by itself.
            self.after(MS, Happening::Register { socket });
        }
        self.after(4 * SECOND, Happening::Tick { socket });
    }

    fn proof(&mut self, replica: usize, socket: SocketId, register: RegisterId, is_good: bool) {
        let Some(client) = self.clients.get(&socket) else { return };
        let device = client.device.clone();
        let proof = if is_good {
            self.auditor.proves(socket);
            Proof::Good { device, owner: Some("u".into()), pairing_code: None }
        } else {
            Proof::Bad
        };
        let at = self.moment(replica);
        self.replicas[replica].machine.handle_proof(socket, register, proof, at);
    }

    fn store_happens(&mut self, happening: Happening) {
        let mut delay = self.delay();
        if self.faults.stuck > 0 && self.random.once_in(self.faults.stuck) {
            // Longer than anybody waits for it: to the machine the store is away.
            delay = 3 * SECOND;
            self.auditor.trouble_us = Some(self.now_us);
            self.auditor.count("store stuck".into());
        }
        match happening {
            Happening::Read { replica, device, op } => {
                let result = if self.store.is_away { Err(StoreAway) } else { Ok(self.store.read(&device)) };
                // What is not answered at all counts as failed after a while.
                if !(self.store.is_away && self.random.once_in(4)) {
                    self.after(delay, Happening::ReadDone { replica, device, op, result: Box::new(result) });
                }
            }
            Happening::ReadDone { replica, device, op, result } => {
                let at = self.moment(replica);
                self.replicas[replica].machine.handle_read(&device, op, *result, at);
            }
            Happening::Swap { replica, device, op, expected, record } => {
                let is_away = self.store.is_away;
                if is_away && self.random.once_in(6) {
                    // It is on its way for long, and nobody waits for it any more.
                    let late = self.random.below(9_000_000);
                    let happening = Happening::Swap { replica, device, op, expected, record };
                    return self.after(late, happening);
                }
                let is_written = !is_away || self.random.once_in(4);
                let written = if is_written { self.swap(&device, expected, *record) } else { Swapped::Away };
                let swapped = if is_away { Swapped::Away } else { written };
                self.auditor.count(format!("swap {swapped:?}"));
                if !(is_away && self.random.once_in(4)) {
                    self.after(delay, Happening::SwapDone { replica, device, op, swapped });
                }
            }
            Happening::SwapDone { replica, device, op, swapped } => {
                let at = self.moment(replica);
                self.replicas[replica].machine.handle_swapped(&device, op, swapped, at);
            }
            _ => {}
        }
    }

    fn swap(&mut self, device: &Arc<str>, expected: u64, record: Record) -> Swapped {
        self.store.compares_nothing = self.mutation == Some(Mutation::SwapWithoutEpoch);
        let old = self.store.read(device);
        let swapped = self.store.swap(device, expected, record.clone());
        if swapped == Swapped::Won {
            let believed = self.believed(device);
            self.auditor.written(device, &old, &record, &believed, &self.clients, self.now_us);
            let holder = old.holder.as_ref().and_then(|holder| self.clients.get(&holder.socket));
            let is_alive = holder.is_some_and(|client| client.is_alive);
            let now_ms = EPOCH_MS + self.now_us / MS;
            self.auditor.ledger_of_trials.written(device, &old, &record, is_alive, now_ms);
        }
        swapped
    }

    fn write(&mut self, device: &Arc<str>, record: Record) {
        let expected = self.store.read(device).epoch;
        self.swap(device, expected, record);
    }

    fn owner_happens(&mut self, happening: Happening) {
        match happening {
            Happening::AskOwner { replica, device, op, uid, socket, is_lost } => {
                let index = self.index_of(&uid);
                let answer = match index {
                    Some(index) if self.replicas[index].is_alive && !is_lost => {
                        let now = self.moment(index).now;
                        self.replicas[index].machine.owner_answer(&device, socket, now)
                    }
                    Some(index) if self.is_known_dead(index) => OwnerAnswer::Gone,
                    _ => OwnerAnswer::Silent,
                };
                let answer = match answer {
                    OwnerAnswer::Gone if self.mutation == Some(Mutation::RefuseForTheDead) => {
                        OwnerAnswer::Alive { age_ms: 0, idle_ms: 0, heartbeat_ms: 0 }
                    }
                    answer => answer,
                };
                let delay = if answer == OwnerAnswer::Silent { 500 * MS } else { self.delay() };
                self.auditor.count(format!("owner {}", format!("{answer:?}").split(' ').next().unwrap_or_default()));
                self.after(delay, Happening::OwnerSays { replica, device, op, answer });
            }
            Happening::OwnerSays { replica, device, op, answer } => {
                let at = self.moment(replica);
                self.replicas[replica].machine.handle_owner(&device, op, answer, at);
            }
            _ => {}
        }
    }

    /// That a replica is dead is known to all after a while.
    fn is_known_dead(&self, index: usize) -> bool {
        let uid = &self.replicas[index].uid;
        let is_news =
            |happening: &Happening| matches!(happening, Happening::DeadKnown { uid: of, scans_left: 4 } if of == uid);
        !self.replicas[index].is_alive && !self.queue.values().any(is_news)
    }

    fn replica_happens(&mut self, happening: Happening) {
        match happening {
            Happening::Kill { replica } => {
                self.replicas[replica].is_alive = false;
                let uid = self.replicas[replica].uid.clone();
                let sockets: Vec<SocketId> =
                    self.clients.iter().filter(|(_, one)| one.replica == replica).map(|(socket, _)| *socket).collect();
                for socket in sockets {
                    self.clients.remove(&socket);
                    self.auditor.closes(socket);
                }
                let known_in = 20 * MS + self.random.below(400 * MS);
                self.after(known_in, Happening::DeadKnown { uid, scans_left: 4 });
                self.auditor.count("killed".into());
            }
            Happening::DeadKnown { uid, scans_left } => {
                let names = |record: &Record| {
                    let by_holder = record.holder.as_ref().map(|holder| &holder.replica);
                    let by_end = record.ended.as_ref().map(|ended| &ended.replica);
                    by_holder == Some(&uid) || by_end == Some(&uid) && record.status != Status::Offline
                };
                let records = self.store.records.iter();
                let orphans: Vec<Arc<str>> =
                    records.filter(|(_, record)| names(record)).map(|(device, _)| device.clone()).collect();
                for index in 0..self.replicas.len() {
                    if self.replicas[index].is_alive {
                        let at = self.moment(index);
                        self.replicas[index].machine.handle_replica_gone(&uid, at);
                        for device in &orphans {
                            self.replicas[index].machine.handle_orphan(device, uid.clone(), at);
                        }
                    }
                }
                if scans_left > 0 {
                    self.after(6 * SECOND, Happening::DeadKnown { uid, scans_left: scans_left - 1 });
                }
            }
            Happening::Restart => self.start_replica(),
            _ => {}
        }
    }

    fn trouble_happens(&mut self, happening: Happening) {
        self.auditor.trouble_us = Some(self.now_us);
        match happening {
            Happening::StoreAway => {
                self.store.is_away = true;
                self.auditor.count("store away".into());
            }
            Happening::StoreBack { is_empty } => {
                self.store.is_away = false;
                if is_empty {
                    self.store.records.clear();
                    self.auditor.count("store emptied".into());
                }
                for replica in 0..self.replicas.len() {
                    let delay = self.random.below(SECOND);
                    self.after(delay, Happening::StoreSaidBack { replica });
                }
            }
            Happening::StoreSaidBack { replica } => {
                let at = self.moment(replica);
                self.replicas[replica].machine.handle_store_back(at);
            }
            _ => {}
        }
    }

    /// An operator's change, as a host would make it.
    fn operate(&mut self, device: &Arc<str>, operator: Operator) {
        if self.store.is_away {
            return;
        }
        let (old, unix_ms) = (self.store.read(device), EPOCH_MS + self.now_us / MS);
        let new = match operator {
            Operator::Disconnect => old.disconnected(unix_ms),
            Operator::Block => old.blocked(unix_ms),
            Operator::Unblock => old.unblocked(unix_ms),
            Operator::Pair => old.paired_with(Some("u".into()), unix_ms),
        };
        self.auditor.count(format!("{operator:?}"));
        self.auditor.is_operating = true;
        self.write(device, new.clone());
        self.auditor.is_operating = false;
        if new.status != old.status {
            self.auditor.dashboards.insert(device.clone(), (new.epoch, new.status));
        }
        let evicted = old.holder.filter(|_| new.holder.is_none());
        if let Some(holder) = evicted
            && let Some(index) = self.index_of(&holder.replica).filter(|index| self.replicas[*index].is_alive)
        {
            let at = self.moment(index);
            self.replicas[index].machine.handle_evict(device, new.epoch, holder.socket, 0, at);
        }
    }
}
