//! Injects faults into replicas, their links to Redis, their clocks, and Redis.

use std::time::Duration;

use super::state::CallWorld;
use crate::calls::events::{CallEvent, Process};
use crate::calls::replica::{PROCESSES_MAX, ProcessState};
use crate::draws::Drawn;
use crate::scenario::RpcScenario;
use crate::trace::trace;

/// How long a link stays broken: weights, and spans in milliseconds.
const BREAKS: [(usize, u64, u64); 3] = [(4, 10, 400), (4, 400, 3_000), (2, 3_000, 16_000)];

/// Injects a fault into a process, or into Redis.
type Fault<'a> = fn(&mut CallWorld<'a>, Process);

impl<'a> CallWorld<'a> {
    /// Injects a random fault into a random process.
    pub(super) fn random_fault(&mut self) {
        let faults: [(u64, Fault<'a>); 11] = [
            (3, Self::stall),
            (3, Self::break_link),
            (1, Self::break_subscription),
            (2, Self::overrun),
            (3, Self::stop),
            (2, Self::kill_at_once),
            (1, Self::vanish),
            (2, Self::drain),
            (1, Self::restart_redis),
            (1, Self::leap),
            (1, Self::slow_down),
        ];
        self.inject(&faults);
    }

    /// Injects a fault of a scenario into a random process.
    pub(super) fn scenario_fault(&mut self, scenario: &RpcScenario, nth: u64) {
        self.chance.name(Drawn::Fault, 0, nth);
        let weights = &scenario.faults;
        let faults: [(u64, Fault<'a>); 8] = [
            (weights.stall, Self::stall),
            (weights.link, Self::break_link),
            (weights.overrun, Self::overrun),
            (weights.hang, Self::stop),
            (weights.kill, Self::kill_at_once),
            (weights.vanish, Self::vanish),
            (weights.drain, Self::drain),
            (weights.redis, Self::restart_redis),
        ];
        self.inject(&faults);
    }

    fn inject(&mut self, faults: &[(u64, Fault<'a>)]) {
        let running: Vec<Process> = (0..self.replicas.len()).filter(|one| self.replicas[*one].is_running()).collect();
        if running.is_empty() {
            return;
        }
        let process = self.chance.pick(&running);
        if let Some((_, fault)) = self.chance.weighed(faults, |(weight, _)| *weight as usize) {
            fault(self, process);
        }
    }

    /// Whether no other process would be left, or could take the place of one that ends.
    fn is_last(&self) -> bool {
        let running = self.replicas.iter().filter(|one| one.is_running()).count();
        running == 1 || self.replicas.len() == PROCESSES_MAX
    }

    /// A process takes messages too slowly, and some are lost.
    fn overrun(&mut self, process: Process) {
        self.faults.count("overrun");
        trace!(self, "r{process}", "takes messages too slowly");
        self.replicas[process].overrun = 1 + self.chance.below(12);
    }

    fn kill_at_once(&mut self, process: Process) {
        if !self.is_last() {
            self.faults.count("killed");
            self.kill(process, true);
        }
    }

    /// A process is killed with its machine. Redis and the clients notice it late.
    fn vanish(&mut self, process: Process) {
        if !self.is_last() {
            self.faults.count("vanished");
            self.kill(process, false);
        }
    }

    fn drain(&mut self, process: Process) {
        if !self.is_last() && self.replicas[process].is_open() {
            self.faults.count("shut down");
            self.shut_down(process);
        }
    }

    fn leap(&mut self, process: Process) {
        self.faults.count("clock leap");
        let span = self.chance.weighted(&[(1, 1, 5_000), (1, 60_000, 600_000)]);
        trace!(self, "r{process}", "its clock leaps by {} ms", span.as_millis());
        self.replicas[process].clock.leap(self.now, span);
        self.agenda.enter(self.now, CallEvent::Timer(process));
    }

    /// Packets between a process and Redis vanish, and neither side notices.
    fn stall(&mut self, process: Process) {
        let link = &mut self.replicas[process].link;
        if !link.hears {
            return;
        }
        (link.is_stalled, link.hears, link.speaks) = (true, false, false);
        self.faults.count("link stalled");
        trace!(self, "r{process}", "its link to Redis is stalled");
        self.attach_later(process, Duration::ZERO);
    }

    fn break_link(&mut self, process: Process) {
        self.break_connections(process, false);
    }

    fn break_subscription(&mut self, process: Process) {
        self.break_connections(process, true);
    }

    /// Breaks the connections of a process to Redis, or only its subscription.
    fn break_connections(&mut self, process: Process, only_subscription: bool) {
        let link = &mut self.replicas[process].link;
        if !link.hears {
            return;
        }
        (link.hears, link.speaks) = (false, only_subscription);
        self.faults.count(if only_subscription { "subscription broken" } else { "link broken" });
        trace!(self, "r{process}", "its link to Redis breaks, only its subscription: {only_subscription}");
        self.break_off(process, Duration::ZERO);
    }

    /// Redis and a process notice that their link is broken. It is back after a while, but not before `at_least`.
    fn break_off(&mut self, process: Process, at_least: Duration) {
        self.unsubscribe(process);
        let known = self.now + self.chance.weighted(&[(8, 0, 5), (2, 5, 1_500)]);
        self.agenda.enter(known, CallEvent::Interrupted(process));
        let wait = self.attach_later(process, at_least.max(known.since(self.now)));
        debug_assert!(self.now + wait >= known);
    }

    fn attach_later(&mut self, process: Process, at_least: Duration) -> Duration {
        let wait = at_least + self.chance.weighted(&BREAKS);
        let link = &mut self.replicas[process].link;
        link.breaks += 1;
        let breaks = link.breaks;
        self.agenda.enter(self.now + wait, CallEvent::Attached { process, breaks });
        wait
    }

    /// Restarts Redis. All links break, and messages in flight are lost.
    fn restart_redis(&mut self, _: Process) {
        if !self.redis.is_up {
            return;
        }
        self.faults.count("redis restarted");
        trace!(self, "redis", "restarts");
        (self.redis.is_up, self.redis.epoch) = (false, self.redis.epoch + 1);
        let down = self.chance.weighted(&[(3, 100, 1_000), (1, 1_000, 12_000)]);
        self.agenda.enter(self.now + down, CallEvent::RedisUp);
        for process in 0..self.replicas.len() {
            if self.replicas[process].state == ProcessState::Ended {
                continue;
            }
            let link = &mut self.replicas[process].link;
            (link.hears, link.speaks) = (false, false);
            // Messages that waited for a stalled network are lost.
            let was_stalled = std::mem::take(&mut link.is_stalled);
            link.unheard.clear();
            self.flush(process, was_stalled);
            self.break_off(process, down);
        }
    }

    /// Stops a process for a while. Some of its clients give up waiting.
    fn stop(&mut self, process: Process) {
        self.faults.count("stopped");
        let span = self.chance.weighted(&[(3, 50, 1_000), (4, 1_000, 6_000), (3, 6_000, 25_000)]);
        trace!(self, "r{process}", "hangs for {} ms", span.as_millis());
        self.replicas[process].state = ProcessState::Stopped;
        self.agenda.enter(self.now + span, CallEvent::Resume(process));
        for connection in self.accepted_connections(process) {
            let patience = self.chance.weighted(&[(1, 1_000, 8_000), (1, 8_000, 30_000)]);
            if patience < span {
                self.agenda.enter(self.now + patience, CallEvent::ClientNotices { connection });
            }
        }
    }

    /// Continues a stopped process, and gives it the events that came meanwhile.
    pub(super) fn resume(&mut self, process: Process) {
        if self.replicas[process].state != ProcessState::Stopped {
            return;
        }
        trace!(self, "r{process}", "runs on");
        self.replicas[process].state = ProcessState::Running;
        for event in std::mem::take(&mut self.replicas[process].backlog) {
            self.dispatch(event);
        }
    }

    fn slow_down(&mut self, process: Process) {
        self.faults.count("slow clock");
        let percent = self.chance.pick(&[20, 60, 95]);
        trace!(self, "r{process}", "its clock runs at {percent} %");
        self.replicas[process].clock.pace(self.now, percent);
        let span = self.chance.span(1_000, 30_000);
        self.agenda.enter(self.now + span, CallEvent::PaceEnds(process));
    }
}
