//! Runs a world of devices: handles one event after the other, and has the auditor check each step.

use std::sync::Arc;

use pointwork_core::SocketId;
use pointwork_core::devices::{DeviceSessions, Moment};

use super::state::DeviceWorld;
use crate::devices::events::{DeviceEvent, DeviceOperation};
use crate::devices::sockets::index;

impl DeviceWorld<'_> {
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

    /// Handles an event now.
    pub(crate) fn step(&mut self, event: DeviceEvent) {
        self.trace("world", || format!("{event:?}"));
        self.auditor.begin_step(self.now_us);
        self.dispatch(event);
        if self.scenario.is_none() {
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
            let (is_wanted, served) = (self.is_wanted(device), self.serving_socket(device));
            let believed = self.believed(device);
            #[cfg(test)]
            let now_ms = self.unix_ms();
            let (known, record) = (&mut self.devices[device], &self.records[device]);
            known.meter.observe(is_wanted, served, self.now_us);
            let named = record.holder.as_ref().map(|holder| holder.socket);
            let is_known = |socket: &SocketId| self.sockets.get(index(*socket)).is_some_and(|its| its.is_known);
            self.auditor.check_device(&known.id, record, &believed, named.filter(is_known));
            #[cfg(test)]
            self.auditor.check_trial(&known.id, record, now_ms);
        }
        self.touched = touched;
    }

    fn dispatch(&mut self, event: DeviceEvent) {
        match event {
            DeviceEvent::OpenNext { device } => self.open_next(device),
            DeviceEvent::Reopen { device, connector } => self.reopen(device, connector),
            DeviceEvent::Arrive { socket } => self.arrive(socket),
            DeviceEvent::Register { socket } => self.register(socket),
            DeviceEvent::Ping { socket } => self.ping(socket),
            DeviceEvent::Heartbeat { socket } => self.give_heartbeat(socket),
            DeviceEvent::ClientCloses { socket } => self.client_closes(socket),
            DeviceEvent::TurnsHalfOpen { socket } => self.turn_half_open(socket),
            DeviceEvent::ClientNotices { socket, end } => self.client_notices(socket, end),
            DeviceEvent::ReplicaNotices { socket, how } => self.replica_notices(socket, how),
            DeviceEvent::NetworkBreaks { device, nth } => self.break_network(device, nth),
            DeviceEvent::DeviceMoves { device, nth } => self.move_device(device, nth),
            DeviceEvent::Kill { nth } => self.kill(nth),
            DeviceEvent::DeathNoticed { replica, scans_left } => self.death_noticed(replica, scans_left),
            DeviceEvent::Start => self.start_another(),
            DeviceEvent::StoreAway => self.store_away(),
            DeviceEvent::StoreBack { is_empty } => self.store_back(is_empty),
            DeviceEvent::StoreReconnected { replica } => self.store_reconnected(replica),
            DeviceEvent::Read { op } => self.read(op),
            DeviceEvent::Swap { op, expected, record } => self.swap(op, expected, *record),
            DeviceEvent::AskOwner { op, uid, socket, is_lost } => self.ask_owner(op, &uid, socket, is_lost),
            DeviceEvent::Evict { from, device, epoch, uid, socket, after_ms } => {
                self.evict((from, &uid), device, (epoch, socket), after_ms);
            }
            #[cfg(test)]
            DeviceEvent::Operate { device, change } => self.operate(device, change),
            #[cfg(test)]
            DeviceEvent::FalseOffline { device } => self.write_offline(device),
            DeviceEvent::Proof { replica, socket, register } => self.proof(replica, socket, register),
            DeviceEvent::Verdict { op, verdict, exposure } => {
                self.answer(op, |machine, id, at| machine.handle_verdict(id, op.id, verdict, exposure, at));
            }
            DeviceEvent::ReadDone { op, result } => {
                self.answer(op, |machine, id, at| machine.handle_read(id, op.id, *result, at));
            }
            DeviceEvent::SwapDone { op, swapped } => {
                self.answer(op, |machine, id, at| machine.handle_swapped(id, op.id, swapped, at));
            }
            DeviceEvent::OwnerAnswered { op, answer } => {
                self.answer(op, |machine, id, at| machine.handle_owner(id, op.id, answer, at));
            }
            DeviceEvent::EvictConfirmed { replica, device, epoch } => self.evict_confirmed(replica, device, epoch),
        }
    }

    /// Gives a replica an answer, if it still runs.
    fn answer(&mut self, op: DeviceOperation, give: impl FnOnce(&mut DeviceSessions, &Arc<str>, Moment)) {
        if self.replicas[op.replica].is_running {
            self.touch(op.device);
            let at = self.moment(op.replica);
            give(&mut self.replicas[op.replica].machine, &self.devices[op.device].id, at);
        }
    }
}
