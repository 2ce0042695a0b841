//! Runs a world of devices: takes what is next, hands it to whom it happens to, and has the auditor look at it.

use pointwork_core::SocketId;

use super::state::World;
use crate::devices::events::{Event, Operation};
use crate::devices::sockets::index;

impl World<'_> {
    /// Runs until a moment, or until an invariant does not hold.
    pub(crate) fn run_until(&mut self, until_us: u64) {
        while self.auditor.broken.is_none() {
            let next = self.agenda.next_at();
            let wake = self.running.iter().filter_map(|replica| Some((self.wake_us(*replica)?, *replica))).min();
            match (next, wake) {
                (Some(at), _) if at <= until_us && wake.is_none_or(|(wake, _)| at <= wake) => {
                    let Some((_, event)) = self.agenda.pop() else { return };
                    self.now_us = at;
                    self.step(event);
                }
                (_, Some((wake, replica))) if wake <= until_us => {
                    self.now_us = self.now_us.max(wake);
                    self.auditor.begin_step(self.now_us);
                    let at = self.moment(replica);
                    self.replicas[replica].machine.handle_timeout(at);
                    self.touched.extend(0..self.devices.len());
                    self.end_step();
                }
                _ => break,
            }
        }
        self.now_us = self.now_us.max(until_us);
    }

    /// Something happens now.
    pub(crate) fn step(&mut self, event: Event) {
        self.trace("world", || format!("{event:?}"));
        self.auditor.begin_step(self.now_us);
        self.dispatch(event);
        if self.conditions.scenario.is_none() {
            self.touched.extend(0..self.devices.len());
        }
        self.end_step();
    }

    /// Carries out what the replicas want done, and looks at the devices that something happened to.
    fn end_step(&mut self) {
        self.run_commands();
        self.auditor.check_closed();
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for device in touched.drain(..) {
            let (is_wanted, served) = (self.is_wanted(device), self.served(device));
            let believed = self.believed(device);
            let now_ms = self.unix_ms();
            let (known, record) = (&mut self.devices[device], &self.records[device]);
            known.meter.is(is_wanted, served, self.now_us);
            let named = record.holder.as_ref().map(|holder| holder.socket);
            let is_known = |socket: &SocketId| self.sockets.get(index(*socket)).is_some_and(|its| its.is_known);
            self.auditor.check_device(&known.id, record, &believed, named.filter(is_known));
            self.auditor.check_trial(&known.id, record, now_ms);
        }
        self.touched = touched;
    }

    fn dispatch(&mut self, event: Event) {
        match event {
            Event::OpenNext { device } => self.open_next(device),
            Event::Reopen { device, connector } => self.reopen(device, connector),
            Event::Arrive { socket } => self.arrive(socket),
            Event::Register { socket } => self.register(socket),
            Event::Ping { socket } => self.ping(socket),
            Event::Beat { socket } => self.beat(socket),
            Event::ClientCloses { socket } => self.client_closes(socket),
            Event::Fades { socket } => self.fades(socket),
            Event::Hears { socket, end } => self.hears(socket, end),
            Event::Notices { socket, how } => self.notices(socket, how),
            Event::Drop { device, nth } => self.drop_network(device, nth),
            Event::Move { device, nth } => self.move_device(device, nth),
            Event::Kill { nth } => self.kill(nth),
            Event::DeadKnown { replica, scans_left } => self.dead_known(replica, scans_left),
            Event::Start => self.start_another(),
            Event::StoreAway => self.store_away(),
            Event::StoreBack { is_empty } => self.store_back(is_empty),
            Event::StoreSaidBack { replica } => self.store_said_back(replica),
            Event::Read { op } => self.read(op),
            Event::Swap { op, expected, record } => self.swap(op, expected, *record),
            Event::AskOwner { op, uid, socket, is_lost } => self.ask_owner(op, &uid, socket, is_lost),
            Event::Evict { from, device, epoch, uid, socket, after_ms } => {
                self.evict((from, &uid), device, (epoch, socket), after_ms);
            }
            Event::Operate { device, change } => self.operate(device, change),
            Event::FalseOffline { device } => self.say_offline(device),
            Event::Proof { replica, .. } | Event::EvictConfirmed { replica, .. } => self.answered(replica, event),
            Event::Verdict { op, .. } | Event::ReadDone { op, .. } => self.answered(op.replica, event),
            Event::SwapDone { op, .. } | Event::OwnerSays { op, .. } => self.answered(op.replica, event),
        }
    }

    /// A replica has its answer, if it still runs.
    fn answered(&mut self, replica: usize, event: Event) {
        if !self.replicas[replica].is_running {
            return;
        }
        let at = self.moment(replica);
        let (machine, devices, touched) = (&mut self.replicas[replica].machine, &self.devices, &mut self.touched);
        let mut id = |op: Operation| {
            touched.push(op.device);
            &devices[op.device].id
        };
        match event {
            Event::Proof { socket, register, .. } => self.proof(replica, socket, register),
            Event::Verdict { op, verdict, exposure } => machine.handle_verdict(id(op), op.id, verdict, exposure, at),
            Event::ReadDone { op, result } => machine.handle_read(id(op), op.id, *result, at),
            Event::SwapDone { op, swapped } => machine.handle_swapped(id(op), op.id, swapped, at),
            Event::OwnerSays { op, answer } => machine.handle_owner(id(op), op.id, answer, at),
            Event::EvictConfirmed { device, epoch, .. } => {
                machine.handle_evict_confirmed(&devices[device].id, epoch, at);
                self.auditor.count("eviction confirmed");
            }
            _ => {}
        }
    }
}
