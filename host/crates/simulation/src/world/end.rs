//! The end of a schedule: everything heals, every call ends, and then nothing may be left.

use std::time::Duration;

use pointwork_core::Roster;

use super::World;
use crate::agenda::Moment;
use crate::event::{Event, Process};
use crate::replica::State;
use crate::story::tell;

/// How long it takes at most until everybody knows everything.
const HEALING: Duration = Duration::from_secs(15);
/// How long nobody comes or goes before everybody must know everything: what is under way arrives meanwhile.
const QUIET: Duration = Duration::from_secs(1);

impl World<'_> {
    /// Heals everything, lets every call end and every client leave, and looks at what holds then.
    pub(super) fn heal_and_end(&mut self) {
        tell!(self, "world", "everything heals");
        self.heal();
        self.pass(Some(self.now + HEALING));
        self.is_quiet = true;
        self.pass(Some(self.now + QUIET));
        self.check_in_step();
        self.is_quiet = false;
        // From here on only what is open comes to its end.
        self.is_ticking = false;
        self.pass(None);
        self.check_ended();
        if self.audit.broken.is_some() {
            return;
        }
        tell!(self, "world", "all clients leave");
        for client in 0..self.clients.len() {
            self.clients[client].has_left = true;
            self.close_from(client);
        }
        self.pass(None);
        self.check_nothing_left();
    }

    fn pass(&mut self, until: Option<Moment>) {
        if self.audit.broken.is_none() {
            while self.turn_page(until) {}
        }
    }

    fn heal(&mut self) {
        self.is_healed = true;
        self.redis.is_up = true;
        for process in 0..self.replicas.len() {
            self.resume(process);
            let (now, replica) = (self.now, &mut self.replicas[process]);
            replica.overrun = 0;
            replica.clock.pace(now, 100);
            let breaks = replica.link.breaks;
            if replica.state == State::Ended {
                // Whoever vanished is seen to be gone.
                self.unsubscribe(process);
            } else if !replica.link.hears {
                self.agenda.enter(now, Event::Attached { process, breaks });
            }
            self.agenda.enter(now, Event::Timer(process));
        }
    }

    fn running(&self) -> Vec<Process> {
        (0..self.replicas.len()).filter(|process| self.replicas[*process].is_running()).collect()
    }

    fn check_in_step(&mut self) {
        let running = self.running();
        let rosters: Vec<&Roster> = running.iter().map(|process| &self.replicas[*process].roster).collect();
        for process in &running {
            let replica = &self.replicas[*process];
            let now = replica.clock.at(self.now);
            self.audit.check_in_step(*process, &rosters, &self.names, now);
            let (peers, unsynced) = (replica.book.peers(), replica.book.unsynced());
            self.audit.demand((peers, unsynced) == (running.len() - 1, 0), "in-step", || {
                format!("r{process} knows {peers} peers, {unsynced} of them not in step, of {}", running.len())
            });
        }
    }

    fn check_ended(&mut self) {
        for process in self.running() {
            let replica = &self.replicas[process];
            let left = (replica.requests.len(), replica.hand_ins.len(), replica.awaited.len());
            let open = self.audit.open(process);
            self.audit.demand(open == 0 && left == (0, 0, 0), "nothing-left", || {
                format!("r{process}: {open} calls are open; requests, hand-ins and acknowledgements: {left:?}")
            });
        }
    }

    fn check_nothing_left(&mut self) {
        for process in self.running() {
            let replica = &self.replicas[process];
            let sockets = (replica.roster.sockets(), replica.book.sockets());
            self.audit.check_nothing_left(process, &replica.machine);
            self.audit.demand(sockets == (0, 0), "nothing-left", || format!("r{process}: sockets {sockets:?}"));
        }
    }
}
