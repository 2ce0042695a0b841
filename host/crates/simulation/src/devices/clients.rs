//! What clients do: they open sockets in bursts, lose them, move, and answer to what they are told.

use pointwork_core::decision::Departure;

use super::events::{EndHeard, Event};
use super::sockets::{Socket, index, number};
use super::world::{MS, World};
use crate::draws::Drawn;
use crate::scenario::{Span, When};

/// How often an engine's ping is answered.
const PING_US: u64 = 15_000 * MS;
/// A client that finds no replica tries again after so long.
const NOBODY_US: u64 = 500 * MS;
/// How late one is that comes back when it was told to, in milliseconds.
const LATE_MS: Span = Span { min: 0, max: 50 };
/// When a replica notices a broken connection that is not half-open, in milliseconds.
const BROKEN_MS: Span = Span { min: 0, max: 2_000 };

impl World<'_> {
    /// Everything that a device does of its own accord.
    pub(super) fn plan_device(&mut self, device: usize) {
        let (clients, network, draws, end_us) =
            (&self.scenario.clients, &self.scenario.network, self.draws, self.end_us);
        let whom = device as u64;
        let mut begins_us = draws.micros(clients.first_open_ms, Drawn::FirstOpen, whom, 0);
        let mut opened = 0;
        for burst in 0..draws.span(clients.bursts, Drawn::Bursts, whom, 0) {
            let mut at_us = begins_us;
            for _ in 0..draws.span(clients.opens, Drawn::Opens, whom, burst) {
                if at_us < end_us {
                    self.at(at_us, Event::OpenNext { device });
                }
                at_us += draws.micros(clients.spacing_ms, Drawn::Spacing, whom, opened);
                opened += 1;
            }
            begins_us += draws.micros(clients.burst_every_ms, Drawn::BurstEvery, whom, burst);
        }
        for (nth, at_us) in (0..).zip(draws.moments(network.drops_per_hour, end_us, Drawn::Drop, whom)) {
            self.at(at_us, Event::Drop { device, nth });
        }
        for (nth, at_us) in (0..).zip(draws.moments(network.moves_per_hour, end_us, Drawn::Move, whom)) {
            self.at(at_us, Event::Move { device, nth });
        }
    }

    /// The next socket of a burst. A client without the bug closes its earlier ones.
    pub(super) fn open_next(&mut self, device: usize) {
        let earlier = self.devices[device].connectors.len();
        let connector = self.add_connector(device);
        self.open(device, connector);
        if !self.scenario.clients.duplicates_stay {
            for connector in 0..earlier {
                self.devices[device].connectors[connector].is_over = true;
                if let Some(socket) = self.devices[device].connectors[connector].socket {
                    self.client_closes(socket);
                }
            }
        }
    }

    /// A connection opens again, unless it has a socket or is given up.
    pub(super) fn reopen(&mut self, device: usize, connector: usize) {
        let known = &self.devices[device].connectors[connector];
        if !known.is_over && known.socket.is_none() {
            self.open(device, connector);
        }
    }

    fn open(&mut self, device: usize, connector: usize) {
        let attempt = self.devices[device].connectors[connector].attempts;
        let name = ((device as u64) << 40) ^ ((connector as u64) << 20) ^ attempt;
        if self.running.is_empty() {
            return self.after(NOBODY_US, Event::Reopen { device, connector });
        }
        let place = self.draws.below(self.running.len() as u64, Drawn::Replica, name, 0) as usize;
        let (replica, socket) = (self.running[place], self.sockets.len());
        let connection = &mut self.devices[device].connectors[connector];
        (connection.socket, connection.attempts) = (Some(socket), attempt + 1);
        self.devices[device].sockets.push(socket);
        self.devices[device].meter.opens(self.now_us);
        self.sockets.push(Socket {
            device,
            connector,
            replica,
            name,
            packets: 0,
            is_live: true,
            is_known: false,
            wants: false,
            is_registered: false,
            retry_after_ms: None,
        });
        let latency_us = self.latency_us(socket);
        self.after(latency_us, Event::Arrive { socket });
    }

    /// One way of a packet of this socket.
    pub(super) fn latency_us(&mut self, socket: usize) -> u64 {
        let known = &mut self.sockets[socket];
        known.packets += 1;
        self.draws.micros(self.scenario.network.latency_ms, Drawn::Latency, known.name, known.packets)
    }

    pub(super) fn arrive(&mut self, socket: usize) {
        let Socket { device, replica, is_live, .. } = self.sockets[socket];
        if !is_live {
            return;
        }
        if !self.replicas[replica].is_running {
            return self.hears(socket, EndHeard::Lost);
        }
        let at = self.moment(replica);
        if self.replicas[replica].machine.handle_open(number(socket), at).is_err() {
            return self.hears(socket, EndHeard::Lost);
        }
        self.sockets[socket].is_known = true;
        // It hears that it is connected, and registers.
        let there_and_back_us = self.latency_us(socket) + self.latency_us(socket);
        self.after(there_and_back_us, Event::Register { socket });
        let heartbeat_us = self.devices[device].heartbeat_us;
        if heartbeat_us > 0 {
            self.after(heartbeat_us, Event::Beat { socket });
        }
        if heartbeat_us == 0 || heartbeat_us > PING_US {
            self.after(PING_US, Event::Ping { socket });
        }
    }

    pub(super) fn register(&mut self, socket: usize) {
        let Socket { device, replica, .. } = self.sockets[socket];
        if self.sockets[socket].is_open() {
            self.sockets[socket].wants = true;
            self.touch(device);
            let registration = self.devices[device].registration(device as u64);
            let at = self.moment(replica);
            self.replicas[replica].machine.handle_register(number(socket), registration, at);
        }
    }

    pub(super) fn ping(&mut self, socket: usize) {
        if self.sockets[socket].is_open() {
            let replica = self.sockets[socket].replica;
            let at = self.moment(replica);
            self.replicas[replica].machine.handle_packet(number(socket), at);
            self.after(PING_US, Event::Ping { socket });
        }
    }

    pub(super) fn beat(&mut self, socket: usize) {
        let Socket { device, replica, is_registered, .. } = self.sockets[socket];
        if !self.sockets[socket].is_open() {
            return;
        }
        let at = self.moment(replica);
        let machine = &mut self.replicas[replica].machine;
        if is_registered {
            machine.handle_heartbeat(number(socket), &self.devices[device].id, at);
        } else {
            machine.handle_packet(number(socket), at);
        }
        self.after(self.devices[device].heartbeat_us, Event::Beat { socket });
    }

    pub(super) fn client_closes(&mut self, socket: usize) {
        if std::mem::take(&mut self.sockets[socket].is_live) {
            self.ended_at_client(socket);
            let latency_us = self.latency_us(socket);
            self.after(latency_us, Event::Notices { socket, how: Departure::Closed });
        }
    }

    /// A client's socket is of no use any more, and the replica does not know.
    pub(super) fn fades(&mut self, socket: usize) {
        if std::mem::take(&mut self.sockets[socket].is_live) {
            self.ended_at_client(socket);
            let name = self.sockets[socket].name;
            let span_us = self.draws.micros(self.scenario.network.unnoticed_ms, Drawn::Unnoticed, name, 0);
            self.after(span_us, Event::Notices { socket, how: Departure::TransportLost });
        }
    }

    fn ended_at_client(&mut self, socket: usize) {
        let Socket { device, connector, .. } = self.sockets[socket];
        self.touch(device);
        self.devices[device].connectors[connector].socket.take_if(|its| *its == socket);
        self.forget(socket);
    }

    /// A socket that has ended on both sides is not looked at any more.
    fn forget(&mut self, socket: usize) {
        let Socket { device, is_live, is_known, .. } = self.sockets[socket];
        if !is_live && !is_known {
            self.devices[device].sockets.retain(|its| *its != socket);
        }
    }

    /// A replica notices that a socket has ended.
    pub(super) fn notices(&mut self, socket: usize, how: Departure) {
        let Socket { device, replica, .. } = self.sockets[socket];
        if std::mem::take(&mut self.sockets[socket].is_known) {
            self.touch(device);
            let at = self.moment(replica);
            self.replicas[replica].machine.handle_close(number(socket), how, at);
            self.forget(socket);
        }
    }

    /// A replica has ended a socket, or was killed; its client hears of it.
    pub(super) fn ended_at_replica(&mut self, socket: usize, heard: EndHeard) {
        self.sockets[socket].is_known = false;
        self.touch(self.sockets[socket].device);
        self.forget(socket);
        if self.sockets[socket].is_live {
            let latency_us = self.latency_us(socket);
            self.after(latency_us, Event::Hears { socket, heard });
        }
    }

    /// A client hears that its socket has ended, and comes back or not.
    pub(super) fn hears(&mut self, socket: usize, heard: EndHeard) {
        let Socket { device, connector, name, .. } = self.sockets[socket];
        if !std::mem::take(&mut self.sockets[socket].is_live) {
            return;
        }
        self.ended_at_client(socket);
        let clients = &self.scenario.clients;
        let reopen_us = self.draws.micros(clients.reopen_ms, Drawn::Reopen, name, 0);
        let wait_us = match (heard, clients.when_refused, clients.when_evicted) {
            (EndHeard::Refused { retry_after_ms }, When::Obeys, _) => {
                u64::from(retry_after_ms) * MS + self.draws.micros(LATE_MS, Drawn::Jitter, name, 0)
            }
            (EndHeard::Refused { .. }, When::GivesUp, _) | (EndHeard::Evicted, _, When::GivesUp) => {
                self.devices[device].connectors[connector].is_over = true;
                return;
            }
            (EndHeard::Lost | EndHeard::Evicted | EndHeard::Refused { .. }, ..) => reopen_us,
        };
        self.after(wait_us, Event::Reopen { device, connector });
    }

    /// A device's network breaks: all its sockets with it. The connection that it opened last comes back, or all of
    /// a client with the bug.
    pub(super) fn drop_network(&mut self, device: usize, nth: u64) {
        let whom = device as u64;
        let network = &self.scenario.network;
        let is_half_open = self.draws.percent(network.half_open_percent, Drawn::HalfOpen, whom, nth);
        let away_us = self.draws.micros(network.away_ms, Drawn::Away, whom, nth);
        let notice_us = self.draws.micros(BROKEN_MS, Drawn::Noticed, whom, nth);
        let connectors = &self.devices[device].connectors;
        let cut: Vec<usize> = connectors.iter().filter_map(|connector| connector.socket).collect();
        let Some(last) = cut.last().map(|socket| self.sockets[*socket].connector) else { return };
        for socket in cut {
            let connector = self.sockets[socket].connector;
            if is_half_open {
                self.fades(socket);
            } else if std::mem::take(&mut self.sockets[socket].is_live) {
                self.ended_at_client(socket);
                self.after(notice_us, Event::Notices { socket, how: Departure::TransportLost });
            }
            if self.scenario.clients.duplicates_stay || connector == last {
                let jitter_us = self.draws.micros(LATE_MS, Drawn::Jitter, whom, nth ^ (connector as u64) << 20);
                let jitter_us = if connector == last { 0 } else { jitter_us };
                self.after(away_us + jitter_us, Event::Reopen { device, connector });
            } else {
                self.devices[device].connectors[connector].is_over = true;
            }
        }
    }

    /// A device that has a socket moves to another network: a new one there, and the old ones close soon after or are left half-open.
    pub(super) fn move_device(&mut self, device: usize, nth: u64) {
        let whom = device as u64;
        let network = &self.scenario.network;
        let old: Vec<usize> = self.devices[device].connectors.iter().filter_map(|connector| connector.socket).collect();
        if old.is_empty() {
            return;
        }
        let overlap_us = self.draws.micros(network.overlap_ms, Drawn::Overlap, whom, nth);
        let lingers = self.draws.percent(network.lingers_percent, Drawn::Lingers, whom, nth);
        self.devices[device].address = self.draws.bits(Drawn::Replica, whom, nth);
        for socket in old {
            let connector = self.sockets[socket].connector;
            self.devices[device].connectors[connector].is_over = true;
            self.after(overlap_us, if lingers { Event::Fades { socket } } else { Event::ClientCloses { socket } });
        }
        let connector = self.add_connector(device);
        self.open(device, connector);
    }

    /// The session was taken from a socket that is alive.
    pub(super) fn is_flip(&self, old: Option<pointwork_core::SocketId>, new: Option<pointwork_core::SocketId>) -> bool {
        let (Some(old), Some(new)) = (old, new) else { return false };
        old != new && self.sockets.get(index(old)).is_some_and(Socket::is_open)
    }
}
