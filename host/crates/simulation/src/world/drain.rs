//! How a process shuts down in order, and how it ends otherwise.

use std::time::Duration;

use pointwork_core::decision::Departure;

use super::World;
use crate::event::{Connection, Down, Event, Message, Process, socket};
use crate::replica::{Leaving, Origin, State};
use crate::story::{process as name, tell};

/// Between two looks whether all calls have ended.
const LOOK: Duration = Duration::from_millis(40);

impl World<'_> {
    /// A process begins to shut down: its daemons want no more calls.
    pub(super) fn drain(&mut self, process: Process) {
        tell!(self, name(process), "shuts down");
        let until = self.now + self.chance.span(200, 6_000);
        self.replicas[process].leaving = Some(Leaving { until, noted: Vec::new() });
        self.publish(process, None, Message::Leaving, None);
        self.drain_replica(process, 0, true);
        self.agenda.enter(self.now + LOOK, Event::DrainLook(process));
    }

    /// Leaves when nothing is in flight to its daemons and every peer knows, or when its time is over.
    pub(super) fn drain_look(&mut self, process: Process) {
        let replica = &self.replicas[process];
        let Some(leaving) = &replica.leaving else { return };
        let own = self.connections(process);
        let here: usize = own.iter().map(|line| replica.machine.in_flight(socket(*line))).sum();
        let from_others = replica.awaited.iter().filter(|one| matches!(one.origin, Origin::Peer { .. })).count();
        let is_known = replica.liveness.present().all(|peer| leaving.noted.contains(&peer));
        let is_quiet = here + from_others == 0 && is_known;
        if !is_quiet && self.now < leaving.until {
            return self.agenda.enter(self.now + LOOK, Event::DrainLook(process));
        }
        self.faults.count(if is_quiet { "drained" } else { "drained by force" });
        for connection in own {
            self.send_down(connection, Down::Closed);
            self.close(connection, Departure::Drained);
        }
        self.publish(process, None, Message::Farewell, None);
        self.end(process);
        self.unsubscribe(process);
    }

    /// A process ends at once. Its clients learn of it, and Redis does, soon or after a while.
    pub(super) fn kill(&mut self, process: Process, is_seen: bool) {
        tell!(self, name(process), "is killed{}", if is_seen { "" } else { ", and nobody sees it" });
        for connection in self.connections(process) {
            self.audit.truly_left(connection);
            let line = &mut self.lines[connection];
            (line.is_cut, line.is_accepted) = (true, false);
        }
        for connection in 0..self.lines.len() {
            let client = self.lines[connection].client;
            if self.lines[connection].process == process && self.clients[client].connection == Some(connection) {
                self.lines[connection].is_cut = true;
                let noticed = if is_seen { self.chance.span(0, 50) } else { self.chance.span(1_000, 20_000) };
                self.agenda.enter(self.now + noticed, Event::ClientNotices { connection });
            }
        }
        self.end(process);
        if is_seen {
            self.unsubscribe(process);
        } else {
            let seen = self.now + self.chance.span(2_000, 20_000);
            self.agenda.enter(seen, Event::Unsubscribed(process));
        }
    }

    fn end(&mut self, process: Process) {
        let replica = &mut self.replicas[process];
        replica.state = State::Ended;
        replica.backlog.clear();
        (replica.link.hears, replica.link.speaks) = (false, false);
        self.audit.ended(process);
        let next = self.now + self.chance.weighted(&[(3, 100, 900), (1, 900, 8_000)]);
        self.agenda.enter(next, Event::Start);
    }

    /// The connections that a process has accepted.
    pub(super) fn connections(&self, process: Process) -> Vec<Connection> {
        let all = self.lines.iter().enumerate();
        all.filter(|(_, line)| line.process == process && line.is_accepted).map(|(connection, _)| connection).collect()
    }
}
