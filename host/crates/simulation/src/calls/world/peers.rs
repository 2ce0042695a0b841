//! Replicates what the sockets of each process have registered, through the real rosters and books.

use pointwork_core::PeerCommand;
use pointwork_core::decisions::{Departure, Traits};

use super::state::CallWorld;
use crate::calls::events::{PeerMessage, Process};
use crate::calls::liveness::PeerNews;
use crate::trace::trace;

/// How large a part of a snapshot is: so small that most have several.
const PART_BYTES: usize = 120;

impl CallWorld<'_> {
    /// A peer's note.
    pub(super) fn noted(&mut self, process: Process, from: Process, note: PeerMessage) {
        let now = self.catch_up(process);
        let replica = &mut self.replicas[process];
        match note {
            PeerMessage::Change(change) => replica.book.handle_change(&from, (*change).clone(), now),
            PeerMessage::Part(part) => replica.book.handle_snapshot_part(&from, (*part).clone(), now),
            PeerMessage::AskSnapshot => self.send_snapshot(process, from),
            PeerMessage::Resumed(resumed) => self.resumed(process, &resumed),
            PeerMessage::ShuttingDown => {
                if let Some(number) = replica.book.replica(&from) {
                    self.drain_replica(process, number, true);
                }
                self.publish(process, Some(from), PeerMessage::Noted, None);
            }
            PeerMessage::Noted => {
                if let Some(shutdown) = &mut replica.shutdown {
                    shutdown.noted.push(from);
                }
            }
            _ => {}
        }
        self.run_book_commands(process);
    }

    /// A replica, by its number at a process, shuts down or does no more.
    pub(super) fn drain_replica(&mut self, process: Process, number: u32, is_draining: bool) {
        let now = self.catch_up(process);
        self.audit.drain_changed(process, number, is_draining);
        self.replicas[process].machine.handle_draining(number, is_draining, now);
        self.run_commands(process);
    }

    /// Tells the machines what became known of the link and of peers.
    pub(super) fn apply_peer_news(&mut self, process: Process) {
        for news in std::mem::take(&mut self.replicas[process].liveness.news) {
            let now = self.catch_up(process);
            match news {
                PeerNews::Link(is_up) => {
                    trace!(self, "r{process}", "the link is {}", if is_up { "up" } else { "down" });
                    self.audit.link_changed(process, is_up);
                    self.replicas[process].machine.handle_link(is_up, now);
                    self.run_commands(process);
                }
                PeerNews::Heard { peer, seq } => {
                    self.replicas[process].book.handle_seen(&peer, seq, now);
                    self.run_book_commands(process);
                }
                PeerNews::Lost { peer, cause } => {
                    trace!(self, "r{process}", "has lost r{peer}: {cause:?}");
                    self.faults.count(match cause {
                        Departure::ReplicaSilent => "peer silent",
                        Departure::ReplicaLost => "peer lost",
                        _ => "peer left",
                    });
                    let number = self.replicas[process].book.replica(&peer);
                    self.replicas[process].book.handle_lost(&peer, cause, now);
                    self.run_book_commands(process);
                    if cause != Departure::ReplicaSilent {
                        self.audit.peer_lost(process, peer);
                    }
                    // The number may be another's next.
                    if let Some(number) = number.filter(|_| cause != Departure::ReplicaSilent) {
                        self.drain_replica(process, number, false);
                    }
                }
            }
        }
    }

    /// Carries out the commands of the book.
    pub(super) fn run_book_commands(&mut self, process: Process) {
        while let Some(command) = self.replicas[process].book.next_command() {
            if let PeerCommand::AskSnapshot { peer } = command {
                self.faults.count("snapshot asked for");
                self.publish(process, Some(peer), PeerMessage::AskSnapshot, None);
            } else {
                self.apply_book_command(process, command);
            }
        }
    }

    fn apply_book_command(&mut self, process: Process, command: PeerCommand<Process>) {
        let now = self.catch_up(process);
        let machine = &mut self.replicas[process].machine;
        match command {
            PeerCommand::AskSnapshot { .. } => {}
            PeerCommand::Connect { socket, user, replica, resumable } => {
                self.audit.socket_seen(process, socket, replica, resumable);
                let traits = Traits { resumable, ..Traits::default() };
                machine.handle_connect(socket, user, replica, traits, now);
            }
            PeerCommand::Register { socket, user, method, age } => {
                let is_seen = self.audit.knows_socket(process, socket);
                if is_seen {
                    self.audit.method_registered(process, socket, self.names.room(&user, &method));
                }
                let registered = machine.handle_registered(socket, method, age, now);
                // Of one whose daemon has another socket by now, as it said itself, nothing is taken.
                self.audit
                    .demand(registered.is_ok() == is_seen, "true-news", || format!("{registered:?} of {socket:?}"));
            }
            PeerCommand::Unregister { socket, user, method } => {
                self.audit.method_unregistered(process, socket, self.names.room(&user, &method), now);
                // Of a socket that an absent reply has told of already there is nothing to take back.
                let _ = machine.handle_unregister(socket, &method, now);
            }
            PeerCommand::Gone { socket, cause, .. } => {
                trace!(self, "r{process}", "socket {} is gone: {cause:?}", socket.0);
                self.audit.socket_gone(process, socket, cause, now);
                machine.handle_disconnect(socket, cause, now);
            }
        }
        self.run_commands(process);
    }

    /// Sends a peer all that this process's sockets have registered.
    fn send_snapshot(&mut self, process: Process, peer: Process) {
        let replica = &self.replicas[process];
        let now = replica.clock.at(self.now);
        for part in replica.roster.snapshot(now).into_parts(PART_BYTES) {
            self.publish(process, Some(peer), PeerMessage::Part(part.into()), None);
        }
        // One that came too late to hear it.
        if self.replicas[process].shutdown.is_some() {
            self.publish(process, Some(peer), PeerMessage::ShuttingDown, None);
        }
    }
}
