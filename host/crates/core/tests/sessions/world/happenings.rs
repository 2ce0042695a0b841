//! What each happening does to the machines, the store and the clients.

use super::*;

impl World {
    pub(super) fn happen(&mut self, happening: Happening) {
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
                self.evict(from, device, epoch, &uid, socket, after_ms);
            }
            Happening::EvictConfirmed { replica, device, epoch } => {
                let at = self.moment(replica);
                self.replicas[replica].machine.handle_evict_confirmed(&device, epoch, at);
                self.auditor.count("eviction confirmed".into());
            }
            Happening::FalseOffline { device } => {
                let record = self.store.read(&device);
                self.write(&device, record.touched(DeviceStatus::Offline, false, 0, EPOCH_MS + self.now_us / MS));
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

    /// A replica tells another one to evict its socket.
    fn evict(&mut self, from: usize, device: Arc<str>, epoch: u64, uid: &str, socket: SocketId, after_ms: u32) {
        let Some(index) = self.index_of(uid) else { return };
        if self.is_known_dead(index) {
            // The host that is to say it knows.
            let at = self.moment(from);
            return self.replicas[from].machine.handle_replica_gone(uid, at);
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
                let written = if is_written { self.swap(&device, expected, *record) } else { SwapResult::Away };
                let swapped = if is_away { SwapResult::Away } else { written };
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

    fn swap(&mut self, device: &Arc<str>, expected: u64, record: DeviceRecord) -> SwapResult {
        self.store.compares_nothing = self.mutation == Some(Mutation::SwapWithoutEpoch);
        let old = self.store.read(device);
        let swapped = self.store.swap(device, expected, record.clone());
        if swapped == SwapResult::Won {
            let believed = self.believed(device);
            self.auditor.written(device, &old, &record, &believed, &self.clients, self.now_us);
            let holder = old.holder.as_ref().and_then(|holder| self.clients.get(&holder.socket));
            let is_alive = holder.is_some_and(|client| client.is_alive);
            let now_ms = EPOCH_MS + self.now_us / MS;
            self.auditor.ledger_of_trials.written(device, &old, &record, is_alive, now_ms);
        }
        swapped
    }

    fn write(&mut self, device: &Arc<str>, record: DeviceRecord) {
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
                let names = |record: &DeviceRecord| {
                    let by_holder = record.holder.as_ref().map(|holder| &holder.replica);
                    let by_end = record.ended.as_ref().map(|ended| &ended.replica);
                    by_holder == Some(&uid) || by_end == Some(&uid) && record.status != DeviceStatus::Offline
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
