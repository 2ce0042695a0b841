//! Replicates the registrations of sockets between processes, through the real announcers and peer directories.

use pointwork_core::PeerCommand;
use pointwork_core::decisions::{Departure, Traits};

use super::state::CallWorld;
use crate::calls::events::{PeerMessage, Process};
use crate::calls::liveness::PeerNews;
use crate::trace::trace;

/// The size of a part of a snapshot. It is so small that most snapshots have several parts.
const PART_BYTES: usize = 120;

impl CallWorld<'_> {
    /// Takes a change, a snapshot or other news from a peer.
    pub(super) fn noted(&mut self, process: Process, from: Process, note: PeerMessage) {
        let now = self.catch_up(process);
        let replica = &mut self.replicas[process];
        match note {
            PeerMessage::Change(change) => replica.directory.handle_change(&from, (*change).clone(), now),
            PeerMessage::Part(part) => replica.directory.handle_snapshot_part(&from, (*part).clone(), now),
            PeerMessage::AskSnapshot => self.send_snapshot(process, from),
            PeerMessage::Resumed(resumed) => self.resumed(process, &resumed),
            PeerMessage::ShuttingDown => {
                if let Some(number) = replica.directory.replica(&from) {
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
        self.run_directory_commands(process);
    }

    /// A process learns that a replica shuts down, or no longer does.
    pub(super) fn drain_replica(&mut self, process: Process, number: u32, is_draining: bool) {
        let now = self.catch_up(process);
        self.audit.drain_changed(process, number, is_draining);
        self.replicas[process].machine.handle_draining(number, is_draining, now);
        self.run_commands(process);
    }

    /// Gives the machines the news of the link and of peers.
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
                    self.replicas[process].directory.handle_seen(&peer, seq, now);
                    self.run_directory_commands(process);
                }
                PeerNews::Lost { peer, cause } => {
                    trace!(self, "r{process}", "has lost r{peer}: {cause:?}");
                    self.faults.count(match cause {
                        Departure::ReplicaSilent => "peer silent",
                        Departure::ReplicaLost => "peer lost",
                        _ => "peer left",
                    });
                    let number = self.replicas[process].directory.replica(&peer);
                    self.replicas[process].directory.handle_lost(&peer, cause, now);
                    self.run_directory_commands(process);
                    if cause != Departure::ReplicaSilent {
                        self.audit.peer_lost(process, peer);
                    }
                    // Another peer may get the number next.
                    if let Some(number) = number.filter(|_| cause != Departure::ReplicaSilent) {
                        self.drain_replica(process, number, false);
                    }
                }
            }
        }
    }

    /// Carries out the commands of the peer directory.
    pub(super) fn run_directory_commands(&mut self, process: Process) {
        while let Some(command) = self.replicas[process].directory.next_command() {
            if let PeerCommand::AskSnapshot { peer } = command {
                self.faults.count("snapshot asked for");
                self.publish(process, Some(peer), PeerMessage::AskSnapshot, None);
            } else {
                self.apply_directory_command(process, command);
            }
        }
    }

    fn apply_directory_command(&mut self, process: Process, command: PeerCommand<Process>) {
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
                // The machine refuses it if the daemon has said that it is on another socket now.
                self.audit
                    .demand(registered.is_ok() == is_seen, "true-news", || format!("{registered:?} of {socket:?}"));
            }
            PeerCommand::Unregister { socket, user, method } => {
                self.audit.method_unregistered(process, socket, self.names.room(&user, &method), now);
                // An `Absent` message may have removed the socket already.
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

    fn send_snapshot(&mut self, process: Process, peer: Process) {
        let replica = &self.replicas[process];
        let now = replica.clock.at(self.now);
        for part in replica.announcer.snapshot(now).into_parts(PART_BYTES) {
            self.publish(process, Some(peer), PeerMessage::Part(part.into()), None);
        }
        // The peer may have started after the shutdown was announced.
        if self.replicas[process].shutdown.is_some() {
            self.publish(process, Some(peer), PeerMessage::ShuttingDown, None);
        }
    }
}
