//! Serves a process's own clients: takes their packets, and begins and ends their connections.

use pointwork_core::NumberedChange;
use pointwork_core::decisions::{Departure, Traits};

use super::state::CallWorld;
use crate::calls::audit::CallRecord;
use crate::calls::events::{
    CallEvent, CallRef, CallToken, ClientPacket, Connection, DaemonResult, PeerMessage, Process, ServerPacket, socket,
};
use crate::calls::replica::{AwaitedAck, Origin};
use crate::calls::rooms::Room;
use crate::draws::Drawn;
use crate::trace::trace;

/// How large a call is, in bytes.
const CALL_BYTES: u32 = 100;

impl CallWorld<'_> {
    pub(super) fn handle_client_packet(&mut self, connection: Connection, packet: ClientPacket) {
        let entry = &self.connections[connection];
        let process = entry.process;
        if entry.is_cut || !entry.is_accepted && !matches!(packet, ClientPacket::Hello) {
            return;
        }
        trace!(self, "r{process}", "c{}, socket {}: {packet}", self.connections[connection].client, connection + 1);
        self.measure_result(&packet);
        match packet {
            ClientPacket::Hello => self.accept(process, connection),
            ClientPacket::Resumed(resumed) => {
                // Before whatever the daemon registers next.
                self.publish(process, None, PeerMessage::Resumed(resumed.clone()), None);
                self.resumed(process, &resumed);
            }
            ClientPacket::Register(room) => self.register(process, connection, room),
            ClientPacket::Unregister(room) => self.unregister(process, connection, room),
            ClientPacket::Call { token, room, timeout_ms } => self.call(process, connection, token, room, timeout_ms),
            ClientPacket::Ack { token, given } => self.acknowledge(process, connection, token, given),
            ClientPacket::HandIn { call, value } => self.hand_in(process, connection, call, value),
            ClientPacket::Close => self.close(connection, Departure::Closed),
        }
    }

    fn accept(&mut self, process: Process, connection: Connection) {
        let client = &self.clients[self.connections[connection].client];
        let user = self.names.users[client.user].clone();
        let traits = Traits { local: true, resumable: client.is_resumable, ..Traits::default() };
        self.connections[connection].is_accepted = true;
        let now = self.catch_up(process);
        self.audit.socket_seen(process, socket(connection), 0, traits.resumable);
        self.replicas[process].machine.handle_connect(socket(connection), user, 0, traits, now);
        self.run_commands(process);
    }

    fn register(&mut self, process: Process, connection: Connection, room: Room) {
        let now = self.catch_up(process);
        self.connections[connection].rooms |= room.bit();
        self.measure_return(room);
        self.audit.owner_registered(connection, room);
        self.audit.method_registered(process, socket(connection), room);
        let (user, method) = self.names.of(room);
        let replica = &mut self.replicas[process];
        let registered = replica.machine.handle_register(socket(connection), method.clone(), now);
        self.audit.demand(registered.is_ok(), "true-news", || format!("{registered:?} of a socket that is there"));
        self.run_commands(process);
        let resumable = self.clients[self.connections[connection].client].is_resumable;
        let change = self.replicas[process].announcer.join(socket(connection), user, resumable, method, now);
        self.announce(process, change);
    }

    fn unregister(&mut self, process: Process, connection: Connection, room: Room) {
        let now = self.catch_up(process);
        self.connections[connection].rooms &= !room.bit();
        self.audit.owner_unregistered(connection, room);
        self.audit.method_unregistered(process, socket(connection), room, now);
        let (_, method) = self.names.of(room);
        let replica = &mut self.replicas[process];
        let unregistered = replica.machine.handle_unregister(socket(connection), &method, now);
        self.audit.demand(unregistered.is_ok(), "true-news", || format!("{unregistered:?} of a socket that is there"));
        self.run_commands(process);
        let change = self.replicas[process].announcer.leave(socket(connection), &method);
        self.announce(process, change);
    }

    fn call(&mut self, process: Process, connection: Connection, token: CallToken, room: Room, timeout_ms: u64) {
        let now = self.catch_up(process);
        let timeout = std::time::Duration::from_millis(timeout_ms);
        let (_, method) = self.names.of(room);
        let replica = &mut self.replicas[process];
        match replica.machine.handle_call(socket(connection), method, CALL_BYTES, timeout, now) {
            Ok(call) => {
                replica.calls.push(token);
                let count = replica.calls.len() as u64;
                self.calls[token].taken_on = Some((process, call));
                self.calls[token].arrived = Some(self.now);
                self.audit.call_taken(process, CallRecord::new(token, socket(connection), room, timeout, now));
                self.audit.demand(call.0 == count, "one-answer", || format!("{call:?} is the {count}th call"));
                trace!(self, "r{process}", "  #{token} is call {}", call.0);
            }
            Err(refused) => {
                trace!(self, "r{process}", "  #{token} is refused: {refused:?}");
                self.audit.ends.count("refused");
                self.measure_end(token, Some("refused"));
                self.send_down(connection, ServerPacket::Answer { token });
            }
        }
        self.run_commands(process);
    }

    fn acknowledge(&mut self, process: Process, connection: Connection, token: CallToken, given: DaemonResult) {
        let awaited = &mut self.replicas[process].awaited;
        let its = |awaited: &mut AwaitedAck| awaited.connection == connection && awaited.token == token;
        let ack = awaited.extract_if(.., its).next();
        match ack.map(|ack| ack.origin) {
            None => {}
            Some(Origin::Here(call)) => self.answered(process, call, given),
            Some(Origin::Peer { process: peer, request }) => {
                self.publish(process, Some(peer), PeerMessage::Reply { request, given }, None);
            }
        }
    }

    /// Sends a request to a socket of this process. Returns `false` if it cannot be sent.
    pub(super) fn send_here(
        &mut self,
        process: Process,
        connection: Connection,
        token: CallToken,
        call: Option<CallRef>,
        origin: Origin,
    ) -> bool {
        if !self.connections[connection].is_accepted {
            return false;
        }
        if self.scenario.is_none() && !self.is_healed && self.chance.once_in(150) {
            // It does not take what it is sent: it is cut off, so that it comes back.
            self.faults.count("full buffer");
            self.cut(connection, &[(1, 0, 5)], &[(1, 0, 50)]);
            return false;
        }
        self.replicas[process].awaited.push(AwaitedAck { connection, token, origin });
        self.send_down(connection, ServerPacket::Request { token, call });
        true
    }

    /// Closes a connection at its process. Its acknowledgements end before or after the machine hears of it.
    pub(super) fn close(&mut self, connection: Connection, cause: Departure) {
        let entry = &mut self.connections[connection];
        if !std::mem::take(&mut entry.is_accepted) {
            return;
        }
        let process = entry.process;
        entry.is_cut = true;
        trace!(self, "r{process}", "lets socket {} go: {cause:?}", connection + 1);
        self.audit.socket_left(connection);
        self.chance.name(Drawn::Close, connection as u64, 0);
        let are_acks_first = !self.chance.once_in(3);
        if are_acks_first {
            self.end_acks(process, connection);
        }
        let now = self.catch_up(process);
        self.audit.socket_gone(process, socket(connection), cause, now);
        self.replicas[process].machine.handle_disconnect(socket(connection), cause, now);
        self.run_commands(process);
        if !are_acks_first {
            self.end_acks(process, connection);
        }
        let change = self.replicas[process].announcer.gone(socket(connection), cause);
        self.announce(process, change);
    }

    fn end_acks(&mut self, process: Process, connection: Connection) {
        let awaited = &mut self.replicas[process].awaited;
        let ended: Vec<AwaitedAck> = awaited.extract_if(.., |awaited| awaited.connection == connection).collect();
        for AwaitedAck { origin, .. } in ended {
            match origin {
                Origin::Here(call) => self.unanswerable(process, call),
                Origin::Peer { process: peer, request } => {
                    self.publish(process, Some(peer), PeerMessage::Unanswered { request }, None);
                }
            }
        }
    }

    /// Breaks a connection. Each side notices it after a while.
    pub(super) fn cut(&mut self, connection: Connection, server: &[(usize, u64, u64)], client: &[(usize, u64, u64)]) {
        self.connections[connection].is_cut = true;
        self.chance.name(Drawn::Cut, connection as u64, 0);
        let at = self.now + self.chance.weighted(server);
        self.agenda.enter(at, CallEvent::ServerNotices { connection });
        let at = self.now + self.chance.weighted(client);
        self.agenda.enter(at, CallEvent::ClientNotices { connection });
    }

    fn announce(&mut self, process: Process, change: Option<NumberedChange>) {
        if let Some(change) = change {
            self.publish(process, None, PeerMessage::Change(change.into()), None);
        }
    }
}
