//! Takes the reports of sockets, registrations and links: the truth, and what each process was loss.

use std::collections::BTreeSet;

use pointwork_core::decisions::Departure;
use pointwork_core::{CallId, SocketId, Time};

use super::auditor::CallAuditor;
use super::call_record::CallRecord;
use super::process_view::{KnownMethod, KnownSocket};
use crate::calls::events::{Connection, Process, connection};
use crate::calls::rooms::Room;

impl CallAuditor {
    pub(crate) fn subscription_changed(&mut self, process: Process, is_subscribed: bool) {
        let truth = &mut self.truth.processes[process];
        if is_subscribed && truth.is_cut {
            truth.cut_until = self.moment;
        }
        truth.is_cut = !is_subscribed;
    }

    pub(crate) fn socket_left(&mut self, connection: Connection) {
        self.truth.sockets[connection].has_left = true;
    }

    pub(crate) fn client_left(&mut self, connection: Connection) {
        self.truth.sockets[connection].is_deserted = true;
    }

    pub(crate) fn owner_registered(&mut self, connection: Connection, room: Room) {
        self.truth.sockets[connection].rooms |= room.bit();
    }

    pub(crate) fn owner_unregistered(&mut self, connection: Connection, room: Room) {
        let socket = &mut self.truth.sockets[connection];
        if socket.rooms & room.bit() != 0 {
            socket.rooms &= !room.bit();
            socket.taken_back |= room.bit();
            socket.was_unserved |= socket.rooms == 0;
        }
    }

    /// What a process is told of the socket of a peer must be true.
    pub(super) fn demand_truth(&mut self, connection: Connection, cause: Departure, room: Option<Room>) {
        let is_so = self.truth.is_so(connection, cause, room);
        self.demand(is_so, "true-news", || format!("socket {} is said to be gone, {cause:?}", connection + 1));
    }

    /// A process is told that a socket exists. Its own sockets are of replica 0.
    pub(crate) fn socket_seen(&mut self, process: Process, socket: SocketId, replica: u32, is_resumable: bool) {
        self.views[process].sockets.insert(socket, KnownSocket { replica, is_resumable });
    }

    pub(crate) fn knows_socket(&self, process: Process, socket: SocketId) -> bool {
        self.views[process].sockets.contains_key(&socket)
    }

    /// A process is told that a socket has a method.
    pub(crate) fn method_registered(&mut self, process: Process, socket: SocketId, room: Room) {
        let view = &mut self.views[process];
        if view.has(room, socket) {
            return;
        }
        view.registrations += 1;
        let registration = view.registrations;
        view.rooms[room.0].push(KnownMethod { socket, registration });
        view.sent_to(socket).filter(|record| record.room == room).for_each(CallRecord::regain_target);
    }

    /// A process is told that a socket has taken a method back.
    pub(crate) fn method_unregistered(&mut self, process: Process, socket: SocketId, room: Room, now: Time) {
        if !self.views[process].has(room, socket) {
            return;
        }
        self.demand_truth(connection(socket), Departure::Unregistered, Some(room));
        let view = &mut self.views[process];
        view.rooms[room.0].retain(|member| member.socket != socket);
        let concerned = view.sent_to(socket).filter(|record| record.room == room);
        concerned.for_each(|record| record.lose_target(Departure::Unregistered, now));
        view.note_unserved(Some(room));
    }

    /// A process is told that a socket is gone or silent.
    pub(crate) fn socket_gone(&mut self, process: Process, socket: SocketId, cause: Departure, now: Time) {
        self.demand_truth(connection(socket), cause, None);
        self.views[process].lose(socket, cause, now);
    }

    /// A process is told that a daemon is back on another socket, and which requests it has. With `is_same_user` the
    /// old socket belongs to the same user.
    pub(crate) fn daemon_resumed(
        &mut self,
        process: Process,
        (user, is_same_user): (usize, bool),
        (old, new): (SocketId, SocketId),
        has: &BTreeSet<CallId>,
        now: Time,
    ) {
        let view = &mut self.views[process];
        for id in view.open.clone() {
            let record = view.record(id);
            let is_its = record.sent.is_some_and(|sent| sent.target == old && sent.is_resumable);
            if is_its && record.room.user() == user {
                record.resume_target(new, has.contains(&id), now);
            }
        }
        // Whoever is to tell of the old socket's end may not know it yet; its daemon does.
        if is_same_user {
            view.given_up.insert(old);
        }
        if is_same_user && view.sockets.contains_key(&old) {
            view.lose(old, Departure::TransportLost, now);
        }
    }

    pub(crate) fn link_changed(&mut self, process: Process, is_linked: bool) {
        self.views[process].is_linked = is_linked;
    }

    /// A process is told whether a replica shuts down; 0 is itself.
    pub(crate) fn drain_changed(&mut self, process: Process, replica: u32, is_draining: bool) {
        let view = &mut self.views[process];
        view.draining.retain(|known| *known != replica);
        if is_draining {
            view.draining.push(replica);
        }
        view.note_unserved(None);
    }
}
