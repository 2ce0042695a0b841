//! Runs a world of calls: handles one event after the other, and heals everything at the end.

use std::time::Duration;

use pointwork_core::decisions::Departure;
use pointwork_core::{Announcer, Time};

use super::state::CallWorld;
use crate::calls::events::{CallEvent, HandInOutcome, Process};
use crate::calls::replica::ProcessState;
use crate::time::WorldTime;
use crate::trace::trace;

/// How long it takes at most until all processes agree.
const HEALING: Duration = Duration::from_secs(15);
/// How long no client comes or goes before all processes must agree. Messages in flight arrive meanwhile.
const QUIET: Duration = Duration::from_secs(1);

impl CallWorld<'_> {
    /// Runs the whole schedule, or until an invariant does not hold.
    pub(crate) fn run(&mut self) {
        while self.steps < self.steps_max && self.next_event(None) {}
        if self.audit.broken.is_none() {
            self.heal_and_end();
        }
    }

    /// Handles the next event by `until`. Returns `false` if there is none, or an invariant does not hold.
    fn next_event(&mut self, until: Option<WorldTime>) -> bool {
        if let (Some(until), Some(at)) = (until, self.agenda.next_at())
            && at > until
        {
            return false;
        }
        let Some((at, event)) = self.agenda.pop() else { return false };
        (self.now, self.audit.moment) = (at, at);
        self.dispatch(event);
        self.audit.broken.is_none()
    }

    pub(super) fn dispatch(&mut self, event: CallEvent) {
        if self.is_quiet && matches!(event, CallEvent::Connect(_) | CallEvent::ServerNotices { .. }) {
            return self.agenda.enter(self.now + Duration::from_secs(1), event);
        }
        if let Some(process) = self.process_of(&event) {
            match self.replicas[process].state {
                ProcessState::Running => {}
                ProcessState::Stopped => return self.replicas[process].backlog.push_back(event),
                ProcessState::Ended => return,
            }
        }
        match event {
            CallEvent::Step => match self.scenario {
                Some(scenario) => self.scenario_step(scenario),
                None => self.random_step(),
            },
            CallEvent::Tick(process) => self.tick(process),
            CallEvent::Look(process) => self.look(process),
            CallEvent::Timer(process) => self.alarm(process),
            CallEvent::Verdict { process, call, ask, verdict } => self.late_answer(process, call, ask, verdict),
            CallEvent::Arrive { to, from, epoch, message } => self.arrive(to, from, epoch, message),
            CallEvent::Interrupted(process) => self.interrupted(process),
            CallEvent::Attached { process, breaks } => self.attached(process, breaks),
            CallEvent::SendFailed { process, request } => {
                self.lose_request(process, request);
                self.close_hand_in(process, request, HandInOutcome::Unreachable);
            }
            CallEvent::AckOver { process, peer, request } => self.ack_over(process, peer, request),
            CallEvent::HandInOver { process, request } => {
                self.close_hand_in(process, request, HandInOutcome::Unreachable);
            }
            CallEvent::Unsubscribed(process) => self.unsubscribe(process),
            CallEvent::RedisUp => self.redis.is_up = true,
            CallEvent::Resume(process) => self.resume(process),
            CallEvent::Start => self.start(),
            CallEvent::PaceEnds(process) => self.replicas[process].clock.pace(self.now, 100),
            CallEvent::ShutdownCheck(process) => self.check_shutdown(process),
            CallEvent::ClientPacket { connection, packet } => self.handle_client_packet(connection, packet),
            CallEvent::ServerPacket { connection, packet } => self.handle_server_packet(connection, packet),
            CallEvent::ServerNotices { connection } => self.close(connection, Departure::TransportLost),
            CallEvent::ClientNotices { connection } => self.client_notices(connection),
            CallEvent::Connect(client) => self.connect(client),
            CallEvent::Finish { client, token } => self.finish(client, token),
            CallEvent::HandInAgain { client, call } => self.hand_in_again(client, call),
        }
    }

    /// The process that must run for an event to happen. The events of a stopped process wait for it. Those of an ended
    /// process do not happen.
    fn process_of(&self, event: &CallEvent) -> Option<Process> {
        match event {
            CallEvent::Tick(process) | CallEvent::Look(process) | CallEvent::Timer(process) => Some(*process),
            CallEvent::Interrupted(process) | CallEvent::PaceEnds(process) | CallEvent::ShutdownCheck(process) => {
                Some(*process)
            }
            CallEvent::Verdict { process, .. } | CallEvent::Attached { process, .. } => Some(*process),
            CallEvent::SendFailed { process, .. } | CallEvent::HandInOver { process, .. } => Some(*process),
            CallEvent::AckOver { process, .. } => Some(*process),
            CallEvent::Arrive { to, .. } => Some(*to),
            CallEvent::ClientPacket { connection, .. } | CallEvent::ServerNotices { connection } => {
                Some(self.connections[*connection].process)
            }
            _ => None,
        }
    }

    /// The time of a process, after its machine has handled its timeouts.
    pub(super) fn catch_up(&mut self, process: Process) -> Time {
        let replica = &mut self.replicas[process];
        let now = replica.clock.at(self.now);
        #[cfg(test)]
        replica.machine.pass(now);
        if replica.machine.poll_timeout().is_some_and(|at| at <= now) {
            replica.machine.handle_timeout(now);
            self.run_commands(process);
        }
        now
    }

    fn alarm(&mut self, process: Process) {
        let replica = &mut self.replicas[process];
        if replica.alarm == Some(self.now) || replica.alarm.is_some_and(|at| at < self.now) {
            replica.alarm = None;
        }
        self.catch_up(process);
        self.arm(process);
    }

    /// Schedules the timer of a machine, unless an earlier one is scheduled.
    pub(super) fn arm(&mut self, process: Process) {
        let replica = &mut self.replicas[process];
        let Some(at) = replica.machine.poll_timeout() else { return };
        // Timers are a little late now and then.
        let late =
            if self.scenario.is_none() && self.chance.once_in(8) { self.chance.span(0, 3) } else { Duration::ZERO };
        let at = replica.clock.when(at).max(self.now) + late;
        if replica.alarm.is_none_or(|alarm| at < alarm) {
            replica.alarm = Some(at);
            self.agenda.enter(at, CallEvent::Timer(process));
        }
    }

    /// Heals everything, ends every call and every client, and checks the invariants of a quiet world.
    fn heal_and_end(&mut self) {
        trace!(self, "world", "everything heals");
        self.heal();
        self.pass(Some(self.now + HEALING));
        self.is_quiet = true;
        self.pass(Some(self.now + QUIET));
        self.check_in_step();
        self.is_quiet = false;
        // From now on no heartbeats are sent.
        self.is_ticking = false;
        self.pass(None);
        self.check_ended();
        if self.audit.broken.is_some() {
            return;
        }
        trace!(self, "world", "all clients leave");
        for client in 0..self.clients.len() {
            self.clients[client].has_left = true;
            self.close_from(client);
        }
        self.pass(None);
        self.check_nothing_left();
    }

    fn pass(&mut self, until: Option<WorldTime>) {
        if self.audit.broken.is_none() {
            while self.next_event(until) {}
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
            if replica.state == ProcessState::Ended {
                // Redis notices the processes that vanished.
                self.unsubscribe(process);
            } else if !replica.link.hears {
                self.agenda.enter(now, CallEvent::Attached { process, breaks });
            }
            self.agenda.enter(now, CallEvent::Timer(process));
        }
    }

    fn running(&self) -> Vec<Process> {
        (0..self.replicas.len()).filter(|process| self.replicas[*process].is_running()).collect()
    }

    fn check_in_step(&mut self) {
        let running = self.running();
        let announcers: Vec<&Announcer> = running.iter().map(|process| &self.replicas[*process].announcer).collect();
        for process in &running {
            let replica = &self.replicas[*process];
            let now = replica.clock.at(self.now);
            self.audit.check_in_step(*process, &announcers, &self.names, now);
            let (peers, unsynced) = (replica.directory.peers(), replica.directory.unsynced());
            self.audit.demand((peers, unsynced) == (running.len() - 1, 0), "in-step", || {
                format!("r{process} knows {peers} peers, {unsynced} of them not in step, of {}", running.len())
            });
        }
    }

    fn check_ended(&mut self) {
        for process in self.running() {
            let replica = &self.replicas[process];
            let left = (replica.requests.len(), replica.hand_ins.len(), replica.awaited.len());
            let open = self.audit.open_calls(process);
            self.audit.demand(open == 0 && left == (0, 0, 0), "nothing-left", || {
                format!("r{process}: {open} calls are open; requests, hand-ins and acknowledgements: {left:?}")
            });
        }
    }

    fn check_nothing_left(&mut self) {
        for process in self.running() {
            let replica = &self.replicas[process];
            let sockets = (replica.announcer.sockets(), replica.directory.sockets());
            self.audit.check_nothing_left(process, &replica.machine);
            self.audit.demand(sockets == (0, 0), "nothing-left", || format!("r{process}: sockets {sockets:?}"));
        }
    }
}
