//! Shuts processes down in order, and kills them.

use std::time::Duration;

use pointwork_core::decisions::Departure;

use super::state::CallWorld;
use crate::calls::events::{CallEvent, Connection, PeerMessage, Process, ServerPacket, socket};
use crate::calls::replica::{Origin, ProcessState, Shutdown};
use crate::trace::trace;

/// How often a process checks whether all calls have ended.
const LOOK: Duration = Duration::from_millis(40);

impl CallWorld<'_> {
    /// Begins to shut down a process. Its daemons get no more calls.
    pub(super) fn shut_down(&mut self, process: Process) {
        trace!(self, "r{process}", "shuts down");
        let until = self.now + self.chance.span(200, 6_000);
        self.replicas[process].shutdown = Some(Shutdown { until, noted: Vec::new() });
        self.publish(process, None, PeerMessage::ShuttingDown, None);
        self.drain_replica(process, 0, true);
        self.agenda.enter(self.now + LOOK, CallEvent::ShutdownCheck(process));
    }

    /// Ends the process when no call is in flight to its daemons and every peer knows, or when its time is over.
    pub(super) fn check_shutdown(&mut self, process: Process) {
        let replica = &self.replicas[process];
        let Some(shutdown) = &replica.shutdown else { return };
        let own = self.accepted_connections(process);
        let here: usize = own.iter().map(|connection| replica.machine.in_flight(socket(*connection))).sum();
        let from_others = replica.awaited.iter().filter(|one| matches!(one.origin, Origin::Peer { .. })).count();
        let is_known = replica.liveness.present().all(|peer| shutdown.noted.contains(&peer));
        let is_quiet = here + from_others == 0 && is_known;
        if !is_quiet && self.now < shutdown.until {
            return self.agenda.enter(self.now + LOOK, CallEvent::ShutdownCheck(process));
        }
        self.faults.count(if is_quiet { "drained" } else { "drained by force" });
        for connection in own {
            self.send_down(connection, ServerPacket::Closed);
            self.close(connection, Departure::Drained);
        }
        self.publish(process, None, PeerMessage::Farewell, None);
        self.end(process);
        self.unsubscribe(process);
    }

    /// Ends a process at once. Its clients and Redis notice it soon if `is_seen`, else after a while.
    pub(super) fn kill(&mut self, process: Process, is_seen: bool) {
        trace!(self, "r{process}", "is killed{}", if is_seen { "" } else { ", and nobody sees it" });
        for connection in self.accepted_connections(process) {
            self.audit.socket_left(connection);
            let entry = &mut self.connections[connection];
            (entry.is_cut, entry.is_accepted) = (true, false);
        }
        for connection in 0..self.connections.len() {
            let client = self.connections[connection].client;
            if self.connections[connection].process == process && self.clients[client].connection == Some(connection) {
                self.connections[connection].is_cut = true;
                let noticed = if is_seen { self.chance.span(0, 50) } else { self.chance.span(1_000, 20_000) };
                self.agenda.enter(self.now + noticed, CallEvent::ClientNotices { connection });
            }
        }
        self.end(process);
        if is_seen {
            self.unsubscribe(process);
        } else {
            let seen = self.now + self.chance.span(2_000, 20_000);
            self.agenda.enter(seen, CallEvent::Unsubscribed(process));
        }
    }

    fn end(&mut self, process: Process) {
        let replica = &mut self.replicas[process];
        replica.state = ProcessState::Ended;
        replica.backlog.clear();
        (replica.link.hears, replica.link.speaks) = (false, false);
        self.audit.process_ended(process);
        let next = self.now + self.chance.weighted(&[(3, 100, 900), (1, 900, 8_000)]);
        self.agenda.enter(next, CallEvent::Start);
    }

    pub(super) fn accepted_connections(&self, process: Process) -> Vec<Connection> {
        let all = self.connections.iter().enumerate();
        all.filter(|(_, entry)| entry.process == process && entry.is_accepted)
            .map(|(connection, _)| connection)
            .collect()
    }
}
