//! Injects faults into replicas, their links to Redis, their clocks, and Redis.

use std::time::Duration;

use super::state::CallWorld;
use crate::calls::events::{CallEvent, Process};
use crate::calls::replica::{PROCESSES_MAX, ProcessState};
use crate::trace::trace;

/// How long a link stays broken: weights, and spans in milliseconds.
const BREAKS: [(usize, u64, u64); 3] = [(4, 10, 400), (4, 400, 3_000), (2, 3_000, 16_000)];

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Packets between a process and Redis vanish, and neither side notices.
    Stall,
    /// The connections of a process to Redis are broken.
    RedisLink,
    /// Only its subscription is broken.
    Subscription,
    /// It takes messages too slowly, and some are lost.
    Overrun,
    Stop,
    Kill,
    /// It is killed with its machine. Redis and the clients notice it late.
    Vanish,
    Drain,
    Redis,
    Leap,
    /// The clock of a process runs slowly.
    Slow,
}

impl CallWorld<'_> {
    /// Injects a random fault into a random process.
    pub(super) fn fault(&mut self) {
        let Some(process) = self.any_running() else { return };
        let fault = match self.chance.below(20) {
            0..=2 => Fault::Stall,
            3..=5 => Fault::RedisLink,
            6 => Fault::Subscription,
            7..=8 => Fault::Overrun,
            9..=11 => Fault::Stop,
            12..=13 => Fault::Kill,
            14 => Fault::Vanish,
            15..=16 => Fault::Drain,
            17 => Fault::Redis,
            18 => Fault::Leap,
            _ => Fault::Slow,
        };
        self.inject(process, fault);
    }

    pub(super) fn any_running(&mut self) -> Option<Process> {
        let running: Vec<Process> = (0..self.replicas.len()).filter(|one| self.replicas[*one].is_running()).collect();
        if running.is_empty() { None } else { Some(self.chance.pick(&running)) }
    }

    /// Injects a fault into a process or Redis. The last running process is not ended.
    pub(super) fn inject(&mut self, process: Process, fault: Fault) {
        let running = self.replicas.iter().filter(|one| one.is_running()).count();
        let is_last = running == 1 || self.replicas.len() == PROCESSES_MAX;
        match fault {
            Fault::Stall => self.stall(process),
            Fault::RedisLink => self.break_link(process, false),
            Fault::Subscription => self.break_link(process, true),
            Fault::Overrun => {
                self.faults.count("overrun");
                trace!(self, "r{process}", "takes messages too slowly");
                self.replicas[process].overrun = 1 + self.chance.below(12);
            }
            Fault::Stop => self.stop(process),
            Fault::Kill if !is_last => {
                self.faults.count("killed");
                self.kill(process, true);
            }
            Fault::Vanish if !is_last => {
                self.faults.count("vanished");
                self.kill(process, false);
            }
            Fault::Drain if !is_last && self.replicas[process].is_open() => {
                self.faults.count("shut down");
                self.shut_down(process);
            }
            Fault::Redis => self.restart_redis(),
            Fault::Leap => {
                self.faults.count("clock leap");
                let span = self.chance.weighted(&[(1, 1, 5_000), (1, 60_000, 600_000)]);
                trace!(self, "r{process}", "its clock leaps by {} ms", span.as_millis());
                self.replicas[process].clock.leap(self.now, span);
                self.agenda.enter(self.now, CallEvent::Timer(process));
            }
            Fault::Slow => self.slow_down(process),
            Fault::Kill | Fault::Vanish | Fault::Drain => {}
        }
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

    /// Breaks the connections of a process to Redis, or only its subscription.
    fn break_link(&mut self, process: Process, only_subscription: bool) {
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
    fn restart_redis(&mut self) {
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
