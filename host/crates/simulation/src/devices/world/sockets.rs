//! Moves sockets: they arrive at a replica, register, send heartbeats, and end on either side.

use pointwork_core::decisions::Departure;

use super::state::DeviceWorld;
use crate::devices::events::{DeviceEvent, SocketEnd};
use crate::devices::sockets::{Credential, SimulatedSocket, number};
use crate::time::{MS, SECOND};

/// How often an engine's ping is answered.
const PING_US: u64 = 15 * SECOND;
/// How often a socket gives a heartbeat where no scenario says so.
const RANDOM_BEAT_US: u64 = 4 * SECOND;

impl DeviceWorld<'_> {
    pub(super) fn packet_us(&mut self, socket: usize) -> u64 {
        let known = &mut self.sockets[socket];
        known.packets += 1;
        self.conditions.packet_us(known.name, known.packets)
    }

    pub(super) fn arrive(&mut self, socket: usize) {
        let SimulatedSocket { device, replica, is_live, .. } = self.sockets[socket];
        self.touch(device);
        if !is_live {
            return;
        }
        let is_taken = self.replicas[replica].is_running && {
            let at = self.moment(replica);
            self.replicas[replica].machine.handle_open(number(socket), at).is_ok()
        };
        if !is_taken {
            let is_refused = self.replicas[replica].is_running && self.scenario.is_none();
            self.auditor.demand(!is_refused, "open-is-taken", || format!("{socket} cannot open"));
            return self.client_notices(socket, SocketEnd::Lost);
        }
        (self.sockets[socket].is_known, self.sockets[socket].last_heartbeat_us) = (true, self.now_us);
        if self.scenario.is_none() {
            return self.after(RANDOM_BEAT_US, DeviceEvent::Heartbeat { socket });
        }
        // It hears that it is connected, and registers.
        let there_and_back_us = self.packet_us(socket) + self.packet_us(socket);
        self.after(there_and_back_us, DeviceEvent::Register { socket });
        let heartbeat_us = self.devices[device].heartbeat_us;
        if heartbeat_us > 0 {
            self.after(heartbeat_us, DeviceEvent::Heartbeat { socket });
        }
        if heartbeat_us == 0 || heartbeat_us > PING_US {
            self.after(PING_US, DeviceEvent::Ping { socket });
        }
    }

    pub(super) fn register(&mut self, socket: usize) {
        let SimulatedSocket { device, replica, credential, .. } = self.sockets[socket];
        if self.sockets[socket].is_open() {
            self.sockets[socket].wants = true;
            self.touch(device);
            self.auditor.registers(number(socket), credential == Credential::PairingCode);
            let registration = self.sockets[socket].registration(socket, &self.devices[device], device as u64);
            let at = self.moment(replica);
            self.replicas[replica].machine.handle_register(number(socket), registration, at);
        }
    }

    pub(super) fn ping(&mut self, socket: usize) {
        if self.sockets[socket].is_open() {
            let replica = self.sockets[socket].replica;
            let at = self.moment(replica);
            self.replicas[replica].machine.handle_packet(number(socket), at);
            self.after(PING_US, DeviceEvent::Ping { socket });
        }
    }

    /// A packet, and a heartbeat if the socket is registered; at random, heartbeats come unasked, too.
    pub(super) fn give_heartbeat(&mut self, socket: usize) {
        let SimulatedSocket { device, replica, is_registered, is_silent, .. } = self.sockets[socket];
        if !self.sockets[socket].is_open() {
            return;
        }
        let (at, is_random) = (self.moment(replica), self.scenario.is_none());
        let (machine, id) = (&mut self.replicas[replica].machine, &self.devices[device].id);
        let is_heartbeat = !is_silent && (is_registered || is_random);
        if !is_heartbeat || is_random {
            machine.handle_packet(number(socket), at);
        }
        if is_heartbeat {
            machine.handle_heartbeat(number(socket), id, at);
            if machine.holder(id).is_some_and(|holder| holder.socket == number(socket)) {
                self.sockets[socket].heartbeat(self.now_us);
            }
        }
        if is_random && self.settings.evictions_max == 0 && (self.now_us / RANDOM_BEAT_US).is_multiple_of(4) {
            // What was evicted in vain finds it out by itself.
            self.after(MS, DeviceEvent::Register { socket });
        }
        let every_us = if is_random { RANDOM_BEAT_US } else { self.devices[device].heartbeat_us };
        self.after(every_us, DeviceEvent::Heartbeat { socket });
    }

    pub(super) fn client_closes(&mut self, socket: usize) {
        if std::mem::take(&mut self.sockets[socket].is_live) {
            self.ended_at_client(socket);
            let packet_us = self.packet_us(socket);
            self.after(packet_us, DeviceEvent::ReplicaNotices { socket, how: Departure::Closed });
        }
    }

    /// A client's socket is of no use any more, and the replica does not know.
    pub(super) fn turn_half_open(&mut self, socket: usize) {
        let was_open = self.sockets[socket].is_open();
        if std::mem::take(&mut self.sockets[socket].is_live) {
            self.ended_at_client(socket);
            let span_us = self.conditions.unnoticed_us(self.sockets[socket].name);
            if was_open {
                self.auditor.count(format_args!("half-open"));
                #[cfg(test)]
                self.auditor.count_half_open(&self.devices[self.sockets[socket].device].id, span_us);
            }
            self.after(span_us, DeviceEvent::ReplicaNotices { socket, how: Departure::TransportLost });
        }
    }

    pub(super) fn ended_at_client(&mut self, socket: usize) {
        let SimulatedSocket { device, connector, .. } = self.sockets[socket];
        self.touch(device);
        self.devices[device].connectors[connector].socket.take_if(|its| *its == socket);
        self.forget(socket);
    }

    /// A socket that has ended on both sides is not looked at any more.
    fn forget(&mut self, socket: usize) {
        let SimulatedSocket { device, is_live, is_known, .. } = self.sockets[socket];
        if !is_live && !is_known {
            self.devices[device].sockets.retain(|its| *its != socket);
        }
    }

    pub(super) fn replica_notices(&mut self, socket: usize, how: Departure) {
        let replica = self.sockets[socket].replica;
        if self.sockets[socket].is_known {
            self.sockets[socket].is_live = false;
            let at = self.moment(replica);
            self.replicas[replica].machine.handle_close(number(socket), how, at);
            self.ended_at_replica(socket, SocketEnd::Lost);
        }
    }

    /// A replica has ended a socket, or was killed; its client hears of it.
    pub(super) fn ended_at_replica(&mut self, socket: usize, end: SocketEnd) {
        self.sockets[socket].is_known = false;
        self.auditor.closes(number(socket));
        self.touch(self.sockets[socket].device);
        self.forget(socket);
        if self.sockets[socket].is_live {
            let packet_us = self.packet_us(socket);
            self.after(packet_us, DeviceEvent::ClientNotices { socket, end });
        }
    }
}
