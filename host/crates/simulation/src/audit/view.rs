//! What one process was told: of its own sockets, of others', and of its link.

use std::collections::{BTreeMap, BTreeSet};

use pointwork_core::decision::Departure;
use pointwork_core::{CallId, SocketId, Time};

use super::Auditor;
use super::call::CallRecord;
use crate::event::{Process, connection};
use crate::room::{ROOMS, Room};

/// A process's view.
#[derive(Default)]
pub(super) struct View {
    pub(super) is_linked: bool,
    /// The numbers of the replicas that shut down; 0 is its own.
    pub(super) draining: Vec<u32>,
    pub(super) sockets: BTreeMap<SocketId, Seen>,
    pub(super) rooms: [Vec<Member>; ROOMS],
    pub(super) registrations: u64,
    /// By their numbers, less one.
    pub(super) calls: Vec<CallRecord>,
    pub(super) open: Vec<CallId>,
    /// The sockets that it was told have been given up by their daemons.
    pub(super) given_up: BTreeSet<SocketId>,
}

/// A socket that it knows.
pub(super) struct Seen {
    /// 0 for its own.
    pub(super) replica: u32,
    pub(super) is_resumable: bool,
}

/// A socket that it knows to have a method.
pub(super) struct Member {
    pub(super) socket: SocketId,
    /// Its number among all registrations that became known.
    pub(super) registration: u64,
}

impl View {
    pub(super) fn record(&mut self, call: CallId) -> &mut CallRecord {
        &mut self.calls[call.0 as usize - 1]
    }

    pub(super) fn has(&self, room: Room, socket: SocketId) -> bool {
        self.rooms[room.0].iter().any(|member| member.socket == socket)
    }

    /// The replicas of those who could get a call of the method, were they within reach.
    pub(super) fn servers(&self, room: Room) -> impl Iterator<Item = u32> {
        let known = self.rooms[room.0].iter().filter_map(|member| self.sockets.get(&member.socket));
        known.map(|seen| seen.replica).filter(|replica| !self.draining.contains(replica))
    }

    /// Whether nobody could get a call of the method.
    pub(super) fn is_bare(&self, room: Room) -> bool {
        self.servers(room).next().is_none()
    }

    /// Whether a daemon has come to have the method since so many registrations were known.
    pub(super) fn is_back(&self, room: Room, registrations: u64) -> bool {
        self.rooms[room.0].iter().any(|member| member.registration > registrations)
    }

    fn note_bare(&mut self, room: Option<Room>) {
        for call in self.open.clone() {
            let record = &self.calls[call.0 as usize - 1];
            let is_concerned = room.is_none_or(|room| room == record.room);
            if record.sent.is_none() && !record.was_bare && is_concerned && self.is_bare(record.room) {
                self.record(call).was_bare = true;
            }
        }
    }

    /// A socket is gone, or not heard from.
    fn lose(&mut self, socket: SocketId, cause: Departure, now: Time) {
        self.sockets.remove(&socket);
        for room in &mut self.rooms {
            room.retain(|member| member.socket != socket);
        }
        // One that has no methods any more has told of each, and is there all the same.
        if cause != Departure::Unregistered {
            self.sent_to(socket).for_each(|record| record.tell(cause, now));
        }
        for call in self.open.clone() {
            let record = self.record(call);
            record.has_caller_left |= record.caller == socket;
        }
        self.note_bare(None);
    }

    /// The open calls that were sent to a socket.
    fn sent_to(&mut self, socket: SocketId) -> impl Iterator<Item = &mut CallRecord> {
        let records = self.calls.iter_mut();
        records.filter(move |record| record.is_open && record.sent.is_some_and(|sent| sent.target == socket))
    }
}

impl Auditor {
    /// A process is told that a socket is there; of replica 0 if it is its own.
    pub(crate) fn seen(&mut self, process: Process, socket: SocketId, replica: u32, is_resumable: bool) {
        self.views[process].sockets.insert(socket, Seen { replica, is_resumable });
    }

    /// Whether a process knows a socket.
    pub(crate) fn sees(&self, process: Process, socket: SocketId) -> bool {
        self.views[process].sockets.contains_key(&socket)
    }

    /// A process is told that a socket has a method.
    pub(crate) fn registered(&mut self, process: Process, socket: SocketId, room: Room) {
        let view = &mut self.views[process];
        if view.has(room, socket) {
            return;
        }
        view.registrations += 1;
        let registration = view.registrations;
        view.rooms[room.0].push(Member { socket, registration });
        view.sent_to(socket).filter(|record| record.room == room).for_each(CallRecord::trust);
    }

    /// A process is told that a socket has taken a method back.
    pub(crate) fn unregistered(&mut self, process: Process, socket: SocketId, room: Room, now: Time) {
        if !self.views[process].has(room, socket) {
            return;
        }
        self.demand_truth(connection(socket), Departure::Unregistered, Some(room));
        let view = &mut self.views[process];
        view.rooms[room.0].retain(|member| member.socket != socket);
        let concerned = view.sent_to(socket).filter(|record| record.room == room);
        concerned.for_each(|record| record.tell(Departure::Unregistered, now));
        view.note_bare(Some(room));
    }

    /// A process is told that a socket is gone, or not heard from.
    pub(crate) fn gone(&mut self, process: Process, socket: SocketId, cause: Departure, now: Time) {
        self.demand_truth(connection(socket), cause, None);
        self.views[process].lose(socket, cause, now);
    }

    /// A process is told that a daemon is back on another socket, and which of its requests it has. `is_its_own`: the old socket
    /// is one of the same user.
    pub(crate) fn resumed(
        &mut self,
        process: Process,
        (user, is_its_own): (usize, bool),
        (old, new): (SocketId, SocketId),
        has: &BTreeSet<CallId>,
        now: Time,
    ) {
        let view = &mut self.views[process];
        for id in view.open.clone() {
            let record = view.record(id);
            let is_its = record.sent.is_some_and(|sent| sent.target == old && sent.is_resumable);
            if is_its && record.room.user() == user {
                record.resume(new, has.contains(&id), now);
            }
        }
        // Whoever is to tell of the old socket's end may not know it yet; its daemon does.
        if is_its_own {
            view.given_up.insert(old);
        }
        if is_its_own && view.sockets.contains_key(&old) {
            view.lose(old, Departure::TransportLost, now);
        }
    }

    /// A process is told whether others can be reached.
    pub(crate) fn linked(&mut self, process: Process, is_linked: bool) {
        self.views[process].is_linked = is_linked;
    }

    /// A process is told whether a replica shuts down; 0 is its own.
    pub(crate) fn draining(&mut self, process: Process, replica: u32, is_draining: bool) {
        let view = &mut self.views[process];
        view.draining.retain(|known| *known != replica);
        if is_draining {
            view.draining.push(replica);
        }
        view.note_bare(None);
    }
}
