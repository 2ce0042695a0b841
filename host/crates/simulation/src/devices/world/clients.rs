//! Moves the clients of a scenario: they open sockets in bursts, lose them, change networks, and react to refusals and
//! evictions.

use pointwork_core::decisions::Departure;

use super::state::DeviceWorld;
use crate::devices::events::{DeviceEvent, SocketEnd};
use crate::devices::sockets::SimulatedSocket;
use crate::draws::Drawn;
use crate::scenario::{Span, When};
use crate::time::MS;

/// After how long a client tries again that found no replica.
const NOBODY_US: u64 = 500 * MS;
/// How late a client comes back that was told when to, in milliseconds.
const LATE_MS: Span = Span { min: 0, max: 50 };
/// When a replica notices a broken connection that is not half-open, in milliseconds.
const BROKEN_MS: Span = Span { min: 0, max: 2_000 };

impl DeviceWorld<'_> {
    /// The next socket of a burst. A client without the bug closes its earlier ones.
    pub(super) fn open_next(&mut self, device: usize) {
        let Some(scenario) = self.scenario else { return };
        let earlier = self.devices[device].connectors.len();
        let connector = self.add_connector(device);
        self.open(device, connector);
        if !scenario.clients.duplicates_stay {
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
            return self.after(NOBODY_US, DeviceEvent::Reopen { device, connector });
        }
        let place = self.draws.below(self.running.len() as u64, Drawn::Replica, name, 0) as usize;
        self.devices[device].meter.opens(self.now_us);
        let socket = self.add_socket(SimulatedSocket::new(device, connector, self.running[place], name));
        let packet_us = self.packet_us(socket);
        self.after(packet_us, DeviceEvent::Arrive { socket });
    }

    /// A client hears that its socket has ended, and comes back or not.
    pub(super) fn client_notices(&mut self, socket: usize, end: SocketEnd) {
        let SimulatedSocket { device, connector, name, .. } = self.sockets[socket];
        if !std::mem::take(&mut self.sockets[socket].is_live) {
            return;
        }
        self.ended_at_client(socket);
        let Some(scenario) = self.scenario else { return };
        let (clients, draws) = (&scenario.clients, self.draws);
        let wait_us = match (end, clients.when_refused, clients.when_evicted) {
            (SocketEnd::Refused { retry_after_ms }, When::Obeys, _) => {
                u64::from(retry_after_ms) * MS + draws.micros(LATE_MS, Drawn::Jitter, name, 0)
            }
            (SocketEnd::Refused { .. }, When::GivesUp, _) | (SocketEnd::Evicted, _, When::GivesUp) => {
                self.devices[device].connectors[connector].is_over = true;
                return;
            }
            _ => draws.micros(clients.reopen_ms, Drawn::Reopen, name, 0),
        };
        self.after(wait_us, DeviceEvent::Reopen { device, connector });
    }

    /// A device's network breaks: all its sockets with it. The connection that it opened last comes back, or all of
    /// a client with the bug.
    pub(super) fn break_network(&mut self, device: usize, nth: u64) {
        let Some(scenario) = self.scenario else { return };
        let (network, draws, whom) = (&scenario.network, self.draws, device as u64);
        let is_half_open = draws.percent(network.half_open_percent, Drawn::HalfOpen, whom, nth);
        let away_us = draws.micros(network.away_ms, Drawn::Away, whom, nth);
        let notice_us = draws.micros(BROKEN_MS, Drawn::Noticed, whom, nth);
        let cut = self.open_sockets(device);
        let Some(last) = cut.last().map(|socket| self.sockets[*socket].connector) else { return };
        for socket in cut {
            let connector = self.sockets[socket].connector;
            if is_half_open {
                self.turn_half_open(socket);
            } else if std::mem::take(&mut self.sockets[socket].is_live) {
                self.ended_at_client(socket);
                self.after(notice_us, DeviceEvent::ReplicaNotices { socket, how: Departure::TransportLost });
            }
            if scenario.clients.duplicates_stay || connector == last {
                let jitter_us = draws.micros(LATE_MS, Drawn::Jitter, whom, nth ^ (connector as u64) << 20);
                let jitter_us = if connector == last { 0 } else { jitter_us };
                self.after(away_us + jitter_us, DeviceEvent::Reopen { device, connector });
            } else {
                self.devices[device].connectors[connector].is_over = true;
            }
        }
    }

    /// A device that has a socket moves to another network: it opens a socket there, and the old ones close soon after
    /// or are left half-open.
    pub(super) fn move_device(&mut self, device: usize, nth: u64) {
        let Some(scenario) = self.scenario else { return };
        let (network, draws, whom) = (&scenario.network, self.draws, device as u64);
        let old = self.open_sockets(device);
        if old.is_empty() {
            return;
        }
        let overlap_us = draws.micros(network.overlap_ms, Drawn::Overlap, whom, nth);
        let lingers = draws.percent(network.lingers_percent, Drawn::Lingers, whom, nth);
        self.devices[device].address = draws.bits(Drawn::Replica, whom, nth);
        for socket in old {
            let connector = self.sockets[socket].connector;
            self.devices[device].connectors[connector].is_over = true;
            self.after(
                overlap_us,
                if lingers { DeviceEvent::TurnsHalfOpen { socket } } else { DeviceEvent::ClientCloses { socket } },
            );
        }
        let connector = self.add_connector(device);
        self.open(device, connector);
    }

    /// The sockets of a device, as it believes.
    fn open_sockets(&self, device: usize) -> Vec<usize> {
        self.devices[device].connectors.iter().filter_map(|connector| connector.socket).collect()
    }
}
