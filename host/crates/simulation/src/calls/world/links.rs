//! Keeps the link of a process to Redis: sends heartbeats, checks which peers are subscribed, and recovers after a
//! break.

use std::time::Duration;

use super::state::CallWorld;
use crate::calls::events::{CallEvent, HandInOutcome, PeerMessage, Process};
use crate::trace::trace;

/// How often a process checks its peers. Every other time it also sends a heartbeat.
const TICK: Duration = Duration::from_millis(250);

impl CallWorld<'_> {
    pub(super) fn tick(&mut self, process: Process) {
        let replica = &mut self.replicas[process];
        let now = replica.clock.at(self.now);
        replica.liveness.timeout(now);
        self.apply_peer_news(process);
        let replica = &mut self.replicas[process];
        let is_up = replica.liveness.is_up();
        if replica.liveness.is_cut_off(now) {
            // Callers get an error now instead of waiting for the link.
            self.fail_all(process);
        } else if is_up && std::mem::take(&mut replica.is_recall_due) {
            self.recall_all(process);
        }
        self.look(process);
        self.replicas[process].directory.handle_timeout(now);
        self.run_directory_commands(process);
        let replica = &mut self.replicas[process];
        replica.ticks += 1;
        let (is_beat_due, next) = (replica.ticks % 2 == 1, replica.clock.when(now + TICK));
        if is_beat_due {
            self.beat(process, None, !is_up);
        }
        if self.is_ticking {
            self.agenda.enter(next.max(self.now), CallEvent::Tick(process));
        }
    }

    /// Checks which peers are subscribed.
    pub(super) fn look(&mut self, process: Process) {
        let mut liveness = std::mem::take(&mut self.replicas[process].liveness);
        let now = self.replicas[process].clock.at(self.now);
        liveness.look(|peer| self.replicas[peer].link.is_subscribed, now);
        self.replicas[process].liveness = liveness;
        self.apply_peer_news(process);
    }

    /// Sends a heartbeat to one process or all. With `hello` they answer it at once.
    fn beat(&mut self, process: Process, to: Option<Process>, hello: bool) {
        let replica = &self.replicas[process];
        let (seq, interruptions) = (replica.announcer.seq(), replica.interruptions);
        self.publish(process, to, PeerMessage::Beat { seq, interruptions, hello }, None);
    }

    pub(super) fn handle_own_heartbeat(&mut self, process: Process) {
        let now = self.replicas[process].clock.at(self.now);
        let was_down = self.replicas[process].liveness.echo(now);
        self.apply_peer_news(process);
        if was_down {
            // The peers learn that this process is subscribed.
            self.beat(process, None, false);
            self.recall_all(process);
        }
    }

    pub(super) fn handle_heartbeat(
        &mut self,
        process: Process,
        from: Process,
        seq: u64,
        interruptions: u64,
        hello: bool,
    ) {
        if hello {
            // This must be first, because a peer ignores changes from a process that it does not know.
            self.beat(process, Some(from), false);
        }
        let now = self.replicas[process].clock.at(self.now);
        let was_interrupted = self.replicas[process].liveness.beat(from, seq, interruptions, hello, now);
        self.apply_peer_news(process);
        if was_interrupted {
            self.recall(process, from);
        }
    }

    /// A process notices that its subscription is broken.
    pub(super) fn interrupted(&mut self, process: Process) {
        trace!(self, "r{process}", "its subscription is interrupted");
        let replica = &mut self.replicas[process];
        let now = replica.clock.at(self.now);
        replica.interruptions += 1;
        replica.liveness.interrupted(now);
        self.apply_peer_news(process);
        self.publish(process, None, PeerMessage::Away, None);
    }

    /// Connects a process to Redis, unless the link broke again.
    pub(super) fn attached(&mut self, process: Process, breaks: u32) {
        let link = &mut self.replicas[process].link;
        if link.breaks != breaks || link.hears {
            return;
        }
        if !self.redis.is_up {
            let again = self.now + self.chance.span(10, 250);
            return self.agenda.enter(again, CallEvent::Attached { process, breaks });
        }
        trace!(self, "r{process}", "is connected to Redis");
        let was_stalled = std::mem::take(&mut link.is_stalled);
        let unheard = std::mem::take(&mut link.unheard);
        (link.hears, link.speaks, link.is_subscribed) = (true, true, true);
        self.audit.subscription_changed(process, true);
        // Either the messages that waited arrive, or the connections had to be opened again.
        let is_lost = was_stalled && self.chance.once_in(2);
        self.flush(process, is_lost);
        if is_lost {
            self.interrupted(process);
        } else {
            for (from, message) in unheard {
                self.receive(process, from, message);
            }
        }
        if !was_stalled || is_lost {
            self.beat(process, None, true);
        }
    }

    /// Ends the subscription of a process. The others notice it at their next check.
    pub(super) fn unsubscribe(&mut self, process: Process) {
        self.replicas[process].link.is_subscribed = false;
        self.audit.subscription_changed(process, false);
        for looking in (0..self.replicas.len()).filter(|looking| *looking != process) {
            let first = self.now + self.chance.span(0, 50);
            self.agenda.enter(first, CallEvent::Look(looking));
            self.agenda.enter(first + Duration::from_millis(120), CallEvent::Look(looking));
        }
    }

    fn fail_all(&mut self, process: Process) {
        let replica = &self.replicas[process];
        let requests: Vec<u32> = replica.requests.iter().map(|open| open.request).collect();
        let hand_ins: Vec<u32> = replica.hand_ins.iter().map(|open| open.request).collect();
        requests.into_iter().for_each(|request| self.lose_request(process, request));
        hand_ins.into_iter().for_each(|request| self.close_hand_in(process, request, HandInOutcome::Unreachable));
    }
}
