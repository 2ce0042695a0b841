//! Carries messages between processes through Redis. Messages from one sender to one receiver keep their order. They
//! are lost only where Redis loses them.

use super::state::CallWorld;
use crate::calls::events::{CallEvent, PeerMessage, Process};
use crate::calls::replica::PROCESSES_MAX;
use crate::draws::Drawn;
use crate::trace::trace;

const UNSENT_MAX: usize = 256;

impl CallWorld<'_> {
    /// Sends a message to one process, or to all if `to` is `None`. `request` fails if the message cannot be sent.
    pub(super) fn publish(&mut self, from: Process, to: Option<Process>, message: PeerMessage, request: Option<u32>) {
        let link = &mut self.replicas[from].link;
        if link.speaks {
            return self.send(from, to, &message);
        }
        if link.unsent.len() < UNSENT_MAX && (link.is_stalled || self.chance.once_in(2)) {
            link.unsent.push_back((to, message, request));
        } else {
            self.not_sent(from, request);
        }
    }

    /// Sends the messages that waited for the connection, or drops them.
    pub(super) fn flush(&mut self, process: Process, is_lost: bool) {
        for (to, message, request) in std::mem::take(&mut self.replicas[process].link.unsent) {
            if is_lost {
                self.not_sent(process, request);
            } else {
                self.send(process, to, &message);
            }
        }
    }

    fn not_sent(&mut self, from: Process, request: Option<u32>) {
        self.faults.count("message not sent");
        if let Some(request) = request {
            let at = self.now + self.chance.span(1, 400);
            self.agenda.enter(at, CallEvent::SendFailed { process: from, request });
        } else {
            // The peers ask about their requests when they see the next heartbeat, and so does this process.
            let replica = &mut self.replicas[from];
            replica.interruptions += 1;
            replica.is_recall_due = true;
        }
    }

    fn send(&mut self, from: Process, to: Option<Process>, message: &PeerMessage) {
        if let Some(to) = to {
            return self.send_to(from, to, message.clone());
        }
        // A process receives its own heartbeats, and no other message of its own.
        let is_echoed = matches!(message, PeerMessage::Beat { .. });
        for to in (0..self.replicas.len()).filter(|to| is_echoed || *to != from) {
            self.send_to(from, to, message.clone());
        }
    }

    fn send_to(&mut self, from: Process, to: Process, message: PeerMessage) {
        debug_assert!(to < PROCESSES_MAX);
        if !self.replicas[to].link.is_subscribed {
            return;
        }
        let sender = &mut self.replicas[from];
        sender.messages += 1;
        let nth = sender.messages;
        self.chance.name(Drawn::Message, (from * PROCESSES_MAX + to) as u64, nth);
        let slow = if self.is_healed { 0 } else { 1 };
        let delay = self.chance.weighted(&[(30, 0, 1), (3 * slow, 1, 30), (slow, 30, 300)]);
        let last = &mut self.replicas[from].arrivals[to];
        *last = (*last).max(self.now + delay);
        let (at, epoch) = (*last, self.redis.epoch);
        self.agenda.enter(at, CallEvent::Arrive { to, from, epoch, message });
    }

    /// Delivers a message, unless it is lost.
    pub(super) fn arrive(&mut self, to: Process, from: Process, epoch: u32, message: PeerMessage) {
        let replica = &mut self.replicas[to];
        if epoch == self.redis.epoch && replica.link.is_stalled {
            replica.link.unheard.push_back((from, message));
        } else if epoch != self.redis.epoch || !replica.link.hears {
            self.faults.count("message lost");
        } else if replica.overrun > 0 {
            self.faults.count("message overrun");
            replica.overrun -= 1;
            if replica.overrun == 0 {
                self.recall_all(to);
            }
        } else {
            self.receive(to, from, message);
        }
    }

    pub(super) fn receive(&mut self, process: Process, from: Process, message: PeerMessage) {
        if !matches!(message, PeerMessage::Beat { .. } | PeerMessage::Noted) {
            trace!(self, "r{process}", "r{from} says: {message}");
        }
        match message {
            PeerMessage::Beat { .. } if from == process => self.handle_own_heartbeat(process),
            PeerMessage::Beat { seq, interruptions, hello } => {
                self.handle_heartbeat(process, from, seq, interruptions, hello)
            }
            PeerMessage::Away => self.replicas[process].liveness.away(from),
            PeerMessage::Farewell => {
                self.replicas[process].liveness.farewell(from);
                self.apply_peer_news(process);
            }
            PeerMessage::Request(request) => self.serve_peer(process, from, *request),
            PeerMessage::Reply { request, given } => {
                if let Some((call, _)) = self.close_request(process, request) {
                    self.answered(process, call, given);
                }
            }
            PeerMessage::Absent { request } => {
                if let Some((_, target)) = self.close_request(process, request) {
                    self.absent(process, target);
                }
            }
            PeerMessage::Unanswered { request } => {
                if let Some((call, _)) = self.close_request(process, request) {
                    self.unanswerable(process, call);
                }
            }
            PeerMessage::Recall(requests) => self.recalled(process, from, requests),
            PeerMessage::Unserved(requests) => {
                requests.into_iter().for_each(|request| self.lose_request(process, request))
            }
            PeerMessage::HandIn { request, user, call, value } => {
                let taken = self.accept_handed_in(process, user, call, value);
                self.publish(process, Some(from), PeerMessage::HandedIn { request, taken }, None);
            }
            PeerMessage::HandedIn { request, taken } => {
                self.close_hand_in(process, request, taken.into());
            }
            // The changes of an unknown peer are ignored: nobody could notice that one of them is lost.
            note if self.replicas[process].liveness.knows(from) => self.noted(process, from, note),
            _ => {}
        }
    }
}
