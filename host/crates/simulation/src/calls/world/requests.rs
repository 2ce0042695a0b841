//! Sends requests between processes, serves them, asks about lost ones, and takes results that are handed in.

use std::collections::BTreeSet;
use std::time::Duration;

use pointwork_core::decisions::Departure;
use pointwork_core::{CallId, SocketId};

use super::state::CallWorld;
use crate::calls::events::{
    CallEvent, CallRef, Connection, DaemonResult, HandInOutcome, PeerMessage, PeerRequest, Process, Resumed,
    ServerPacket, connection, socket,
};
use crate::calls::replica::{OpenHandIn, OpenRequest, Origin};
use crate::trace::trace;

const HAND_IN_MAX: Duration = Duration::from_secs(5);

impl CallWorld<'_> {
    /// Sends a request to a socket of another process. Returns `false` if the process is not known.
    pub(super) fn send_there(
        &mut self,
        process: Process,
        call: CallId,
        target: SocketId,
        called: Option<CallRef>,
        left: Duration,
    ) -> bool {
        let replica = &mut self.replicas[process];
        let Some(peer) = replica.directory.owner(target).copied() else { return false };
        let request = replica.next_request();
        replica.requests.push(OpenRequest { request, peer, call, target });
        let token = replica.calls[call.0 as usize - 1];
        let message = PeerMessage::Request(Box::new(PeerRequest { request, target, token, call: called, left }));
        self.publish(process, Some(peer), message, Some(request));
        true
    }

    /// A peer sends a request for a socket of this process.
    pub(super) fn serve_peer(&mut self, process: Process, peer: Process, request: PeerRequest) {
        let PeerRequest { request, target, token, call, left } = request;
        let target_connection = connection(target);
        if !self.connections[target_connection].is_accepted {
            return self.publish(process, Some(peer), PeerMessage::Absent { request }, None);
        }
        if self.send_here(process, target_connection, token, call, Origin::Peer { process: peer, request }) {
            let clock = &self.replicas[process].clock;
            let at = clock.when(clock.at(self.now) + left);
            self.agenda.enter(at, CallEvent::AckOver { process, peer, request });
        } else {
            self.publish(process, Some(peer), PeerMessage::Unanswered { request }, None);
        }
    }

    pub(super) fn ack_over(&mut self, process: Process, peer: Process, request: u32) {
        let awaited = &mut self.replicas[process].awaited;
        let before = awaited.len();
        awaited.retain(|awaited| awaited.origin != Origin::Peer { process: peer, request });
        if awaited.len() < before {
            self.publish(process, Some(peer), PeerMessage::Unanswered { request }, None);
        }
    }

    pub(super) fn answered(&mut self, process: Process, call: CallId, given: DaemonResult) {
        let now = self.catch_up(process);
        let machine = &mut self.replicas[process].machine;
        match given {
            DaemonResult::Value(value) => machine.handle_result(call, value, now),
            DaemonResult::Unusable => machine.handle_unusable(call, now),
        }
        self.run_commands(process);
    }

    pub(super) fn unanswerable(&mut self, process: Process, call: CallId) {
        let now = self.catch_up(process);
        self.audit.request_unanswerable(process, call, false, now);
        self.replicas[process].machine.handle_unanswerable(call, now);
        self.run_commands(process);
    }

    /// A peer says that the target of a request is not there.
    pub(super) fn absent(&mut self, process: Process, target: SocketId) {
        let now = self.catch_up(process);
        self.audit.socket_gone(process, target, Departure::TransportLost, now);
        self.replicas[process].machine.handle_disconnect(target, Departure::TransportLost, now);
        self.run_commands(process);
    }

    /// Closes a request of this process. Returns its call and target if it was open.
    pub(super) fn close_request(&mut self, process: Process, request: u32) -> Option<(CallId, SocketId)> {
        let requests = &mut self.replicas[process].requests;
        let open = requests.extract_if(.., |open| open.request == request).next();
        open.map(|OpenRequest { call, target, .. }| (call, target))
    }

    /// Fails a request of this process because it or its answer is lost.
    pub(super) fn lose_request(&mut self, process: Process, request: u32) {
        if let Some((call, _)) = self.close_request(process, request) {
            self.faults.count("lost request");
            let now = self.catch_up(process);
            trace!(self, "r{process}", "the request of call {} is lost", call.0);
            self.audit.request_lost(process, call);
            self.replicas[process].machine.handle_unreachable(call, now);
            self.run_commands(process);
        }
    }

    /// After messages to this process may have been lost, asks each peer about the requests to it. Requests to unknown
    /// peers fail.
    pub(super) fn recall_all(&mut self, process: Process) {
        let replica = &self.replicas[process];
        let peers: Vec<Process> = replica.liveness.all().collect();
        let orphans = replica.requests.iter().filter(|open| !peers.contains(&open.peer));
        for request in orphans.map(|open| open.request).collect::<Vec<_>>() {
            self.lose_request(process, request);
        }
        for peer in peers {
            self.recall(process, peer);
        }
    }

    /// After messages to or from a peer may have been lost, asks it about the requests to it.
    pub(super) fn recall(&mut self, process: Process, peer: Process) {
        let open = self.replicas[process].requests.iter().filter(|open| open.peer == peer);
        let requests: Vec<u32> = open.map(|open| open.request).collect();
        if !requests.is_empty() {
            self.publish(process, Some(peer), PeerMessage::Recall(requests), None);
        }
    }

    /// Answers a peer which of its requests are not being served.
    pub(super) fn recalled(&mut self, process: Process, peer: Process, mut requests: Vec<u32>) {
        let awaited = &self.replicas[process].awaited;
        requests.retain(|request| {
            let origin = Origin::Peer { process: peer, request: *request };
            awaited.iter().all(|awaited| awaited.origin != origin)
        });
        self.publish(process, Some(peer), PeerMessage::Unserved(requests), None);
    }

    /// A daemon has reconnected, here or elsewhere, and continues its requests.
    pub(super) fn resumed(&mut self, process: Process, resumed: &Resumed) {
        self.faults.count("resumed");
        let Resumed { user, old, new, has } = resumed;
        let own = has.iter().filter(|call| call.process == process);
        let has: BTreeSet<CallId> = own.map(|call| call.call).collect();
        let now = self.catch_up(process);
        let is_same_user = self.clients[self.connections[*old].client].user == *user;
        self.audit.daemon_resumed(process, (*user, is_same_user), (socket(*old), socket(*new)), &has, now);
        let machine = &mut self.replicas[process].machine;
        machine.handle_resumed(&self.names.users[*user], socket(*old), socket(*new), &has, now);
        self.run_commands(process);
        let entry = &self.connections[*old];
        if entry.process == process && entry.is_accepted && is_same_user {
            // The old socket is dead.
            self.connections[*old].is_cut = true;
            self.agenda.enter(self.now, CallEvent::ServerNotices { connection: *old });
        }
    }

    /// A client hands in the result of a call of this process or of a peer.
    pub(super) fn hand_in(&mut self, process: Process, connection: Connection, call: CallRef, value: u64) {
        self.faults.count("hand-in");
        let user = self.clients[self.connections[connection].client].user;
        let liveness = &self.replicas[process].liveness;
        if call.process == process {
            let outcome = self.accept_handed_in(process, user, call.call, value).into();
            return self.send_down(connection, ServerPacket::HandedIn { call, outcome });
        }
        if !liveness.is_up() || !liveness.knows(call.process) {
            let outcome = HandInOutcome::Unreachable;
            return self.send_down(connection, ServerPacket::HandedIn { call, outcome });
        }
        let request = self.replicas[process].next_request();
        self.replicas[process].hand_ins.push(OpenHandIn { request, connection, call });
        self.agenda.enter(self.now + HAND_IN_MAX, CallEvent::HandInOver { process, request });
        let message = PeerMessage::HandIn { request, user, call: call.call, value };
        self.publish(process, Some(call.process), message, Some(request));
    }

    /// Tells the client the outcome of its hand-in.
    pub(super) fn close_hand_in(&mut self, process: Process, request: u32, outcome: HandInOutcome) {
        let hand_ins = &mut self.replicas[process].hand_ins;
        let open = hand_ins.extract_if(.., |open| open.request == request).next();
        if let Some(OpenHandIn { connection, call, .. }) = open {
            self.send_down(connection, ServerPacket::HandedIn { call, outcome });
        }
    }

    /// Takes a result that was handed in for a call of this process. Returns whether the machine took it.
    pub(super) fn accept_handed_in(&mut self, process: Process, user: usize, call: CallId, value: u64) -> bool {
        let now = self.catch_up(process);
        let expected = self.audit.takes_hand_in(process, user, call);
        let taken = self.replicas[process].machine.handle_handed_in(&self.names.users[user], call, value, now);
        trace!(self, "r{process}", "call {} is handed in: taken {taken}", call.0);
        self.faults.count(if taken { "hand-in taken" } else { "hand-in refused" });
        self.audit.demand(taken == expected, "handed-in", || format!("{call:?}: taken {taken}, and not {expected}"));
        self.run_commands(process);
        taken
    }
}
