//! Moves clients: they connect, register, call, answer, hand in results, lose their connection and come back.

use std::time::Duration;

use super::state::CallWorld;
use crate::calls::client::{ClientConnection, DaemonJob, UnsentResult};
use crate::calls::events::{
    CallEvent, CallRef, CallToken, ClientId, ClientPacket, Connection, DaemonResult, HandInOutcome, Process, Resumed,
    ServerPacket,
};
use crate::calls::outcomes::MeasuredCall;
use crate::calls::replica::ProcessState;
use crate::calls::rooms::{ROOMS, Room};
use crate::draws::Drawn;
use crate::scenario::Span;
use crate::time::WorldTime;
use crate::trace::trace;

/// How long a daemon keeps a result that it could not hand in.
const RESULT_MAX: Duration = Duration::from_secs(60);

impl CallWorld<'_> {
    /// Connects a client to a process that is open, and registers its methods.
    pub(super) fn connect(&mut self, client: ClientId) {
        self.clients[client].is_connecting = false;
        if self.clients[client].has_left || self.clients[client].connection.is_some() {
            return;
        }
        // Clients cannot tell that a process is stopped.
        let is_open = |process: &Process| {
            let replica = &self.replicas[*process];
            replica.is_open() || replica.state == ProcessState::Stopped && !self.is_healed
        };
        let open: Vec<Process> = (0..self.replicas.len()).filter(is_open).collect();
        if open.is_empty() {
            return self.connect_after(client, &[(1, 100, 1_000)]);
        }
        self.clients[client].connections += 1;
        self.chance.name(Drawn::Connect, client as u64, self.clients[client].connections);
        let process = self.chance.pick(&open);
        let connection = self.audit.connection_made(process);
        self.connections.push(ClientConnection { client, process, ..ClientConnection::default() });
        trace!(self, "c{client}", "connects to r{process}: socket {}", connection + 1);
        self.clients[client].connection = Some(connection);
        self.send_up(connection, ClientPacket::Hello);
        self.resume_work(client, connection);
        let rooms = self.clients[client].rooms;
        for room in (0..ROOMS).map(Room).filter(|room| rooms & room.bit() != 0) {
            self.send_up(connection, ClientPacket::Register(room));
        }
        self.hand_in_all(client);
        if self.replicas[process].state == ProcessState::Stopped {
            let patience = self.now + self.chance.span(500, 8_000);
            self.agenda.enter(patience, CallEvent::ClientNotices { connection });
        }
    }

    /// A daemon says which requests of its previous connection it has, before it registers its methods.
    fn resume_work(&mut self, client: ClientId, new: Connection) {
        let known = &mut self.clients[client];
        let Some(old) = known.former.take().filter(|_| known.is_resuming) else { return };
        let working = known.jobs.iter().filter_map(|job| job.call);
        let has = working.chain(known.finished.iter().map(|finished| finished.call)).collect();
        let resumed = Resumed { user: known.user, old, new, has };
        self.send_up(new, ClientPacket::Resumed(resumed.into()));
    }

    pub(super) fn send_up(&mut self, connection: Connection, packet: ClientPacket) {
        let at = self.packet_arrival(connection, |entry| &mut entry.last_up);
        self.agenda.enter(at, CallEvent::ClientPacket { connection, packet });
    }

    pub(super) fn send_down(&mut self, connection: Connection, packet: ServerPacket) {
        let at = self.packet_arrival(connection, |entry| &mut entry.last_down);
        self.agenda.enter(at, CallEvent::ServerPacket { connection, packet });
    }

    /// When the next packet of a connection arrives. It does not overtake the last one of its direction.
    fn packet_arrival(
        &mut self,
        connection: Connection,
        last: fn(&mut ClientConnection) -> &mut WorldTime,
    ) -> WorldTime {
        let entry = &mut self.connections[connection];
        entry.packets += 1;
        self.chance.name(Drawn::Packet, connection as u64, entry.packets);
        let delay = self.chance.weighted(&[(8, 0, 1), (1, 1, 40)]);
        let last = last(entry);
        *last = (*last).max(self.now + delay);
        *last
    }

    pub(super) fn handle_server_packet(&mut self, connection: Connection, packet: ServerPacket) {
        let entry = &self.connections[connection];
        let client = entry.client;
        let is_end = matches!(packet, ServerPacket::Closed);
        if entry.is_cut && !is_end || self.clients[client].connection != Some(connection) {
            return;
        }
        trace!(self, "c{client}", "{packet}");
        match packet {
            ServerPacket::Request { token, call } => self.work(client, DaemonJob { token, call, connection }),
            ServerPacket::Answer { token } => {
                self.audit.caller_answered(token);
                self.calls[token].answered = Some(self.now);
            }
            ServerPacket::HandedIn { call, outcome } => self.hand_in_told(client, call, outcome),
            ServerPacket::Closed => self.disconnected(client),
        }
    }

    pub(super) fn make_call(&mut self, client: ClientId, room: Room, timeout_ms: u64) {
        let Some(connection) = self.clients[client].connection else { return };
        let token = self.audit.call_made();
        self.calls.push(MeasuredCall::new(connection, room, timeout_ms, self.now));
        trace!(self, "c{client}", "calls {room} with {timeout_ms} ms: #{token}");
        self.send_up(connection, ClientPacket::Call { token, room, timeout_ms });
    }

    /// A client notices that its connection is broken, or gives it up.
    pub(super) fn client_notices(&mut self, connection: Connection) {
        let client = self.connections[connection].client;
        if self.clients[client].connection != Some(connection) {
            return;
        }
        if !self.connections[connection].is_cut {
            // Its process hears that the client closed it.
            self.connections[connection].is_cut = true;
            let at = self.now + self.chance.span(0, 20);
            self.agenda.enter(at, CallEvent::ServerNotices { connection });
        }
        self.disconnected(client);
    }

    /// Ends the connection of a client, which comes back after a while.
    pub(super) fn disconnected(&mut self, client: ClientId) {
        trace!(self, "c{client}", "is disconnected");
        let known = &mut self.clients[client];
        known.former = known.connection.take();
        if let Some(former) = known.former {
            self.audit.client_left(former);
        }
        let known = &mut self.clients[client];
        known.finished.iter_mut().for_each(|finished| finished.is_sent = false);
        if !known.has_left {
            if let Some(scenario) = self.scenario {
                let Span { min, max } = scenario.return_ms;
                return self.connect_after(client, &[(1, min, max)]);
            }
            let long = if self.is_healed { 0 } else { 1 };
            self.connect_after(
                client,
                &[(8, 0, 200), (5, 200, 3_000), (2 * long, 3_000, 15_000), (long, 15_000, 60_000)],
            );
        }
    }

    fn work(&mut self, client: ClientId, job: DaemonJob) {
        self.audit.request_delivered(job.token);
        self.clients[client].jobs.push(job);
        if let Some(scenario) = self.scenario {
            return self.scenario_work(scenario, client, job.token);
        }
        // One in twenty never answers.
        if !self.chance.once_in(20) {
            let spans = [(50, 0, 20), (20, 20, 500), (24, 500, 6_000), (6, 6_000, 40_000)];
            let at = self.now + self.chance.weighted(&spans);
            self.agenda.enter(at, CallEvent::Finish { client, token: job.token });
        }
    }

    /// A daemon has finished a request.
    pub(super) fn finish(&mut self, client: ClientId, token: CallToken) {
        let jobs = &mut self.clients[client].jobs;
        let Some(job) = jobs.extract_if(.., |job| job.token == token).next() else { return };
        self.chance.name(Drawn::Finish, token as u64, 0);
        let value = token as u64 * 1_000 + self.chance.below(1_000) as u64;
        let given = if self.scenario.is_none() && self.chance.once_in(50) {
            DaemonResult::Unusable
        } else {
            DaemonResult::Value(value)
        };
        trace!(self, "c{client}", "has done #{token}: {given}");
        self.audit.daemon_finished(token, given);
        if self.clients[client].connection == Some(job.connection) {
            return self.send_up(job.connection, ClientPacket::Ack { token, given });
        }
        if let (Some(call), DaemonResult::Value(value)) = (job.call, given) {
            self.clients[client].finished.push(UnsentResult { call, value, at: self.now, is_sent: false });
            self.hand_in_all(client);
        }
    }

    /// A daemon hands in the results that it has not sent, if it is connected.
    fn hand_in_all(&mut self, client: ClientId) {
        let now = self.now;
        let known = &mut self.clients[client];
        known.finished.retain(|finished| now.since(finished.at) < RESULT_MAX);
        let Some(connection) = known.connection else { return };
        let mut packets = Vec::new();
        for finished in known.finished.iter_mut().filter(|finished| !finished.is_sent) {
            finished.is_sent = true;
            packets.push(ClientPacket::HandIn { call: finished.call, value: finished.value });
        }
        packets.into_iter().for_each(|packet| self.send_up(connection, packet));
    }

    fn hand_in_told(&mut self, client: ClientId, call: CallRef, outcome: HandInOutcome) {
        let finished = &mut self.clients[client].finished;
        if outcome != HandInOutcome::Unreachable {
            return finished.retain(|finished| finished.call != call);
        }
        self.faults.count("hand-in unreachable");
        if let Some(finished) = finished.iter().find(|finished| finished.call == call) {
            // It tries less and less often.
            let pause = (self.now.since(finished.at) / 2).max(Duration::from_millis(500));
            self.agenda.enter(self.now + pause, CallEvent::HandInAgain { client, call });
        }
    }

    /// A daemon tries again to hand in a result.
    pub(super) fn hand_in_again(&mut self, client: ClientId, call: CallRef) {
        for finished in &mut self.clients[client].finished {
            finished.is_sent &= finished.call != call;
        }
        self.hand_in_all(client);
    }
}
