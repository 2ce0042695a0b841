//! Records what one process was told of its own sockets, of its peers' sockets, and of its link.

use std::collections::{BTreeMap, BTreeSet};

use pointwork_core::decisions::Departure;
use pointwork_core::{CallId, SocketId, Time};

use super::call_record::CallRecord;
use crate::calls::rooms::{ROOMS, Room};

#[derive(Default)]
pub(super) struct ProcessView {
    pub(super) is_linked: bool,
    /// The numbers of the replicas that shut down; its own is 0.
    pub(super) draining: Vec<u32>,
    pub(super) sockets: BTreeMap<SocketId, KnownSocket>,
    pub(super) rooms: [Vec<KnownMethod>; ROOMS],
    pub(super) registrations: u64,
    /// Each at its number less one.
    pub(super) calls: Vec<CallRecord>,
    pub(super) open: Vec<CallId>,
    /// The sockets whose daemons have said that they are on another one.
    pub(super) given_up: BTreeSet<SocketId>,
}

pub(super) struct KnownSocket {
    /// 0 if it is its own.
    pub(super) replica: u32,
    pub(super) is_resumable: bool,
}

/// A socket that it knows to have a method.
pub(super) struct KnownMethod {
    pub(super) socket: SocketId,
    /// Its number among all registrations that became known.
    pub(super) registration: u64,
}

impl ProcessView {
    pub(super) fn record(&mut self, call: CallId) -> &mut CallRecord {
        &mut self.calls[call.0 as usize - 1]
    }

    pub(super) fn has(&self, room: Room, socket: SocketId) -> bool {
        self.rooms[room.0].iter().any(|member| member.socket == socket)
    }

    /// The replicas of the sockets that could get a call of the method, if they can be reached.
    pub(super) fn servers(&self, room: Room) -> impl Iterator<Item = u32> {
        let known = self.rooms[room.0].iter().filter_map(|member| self.sockets.get(&member.socket));
        known.map(|seen| seen.replica).filter(|replica| !self.draining.contains(replica))
    }

    /// Whether no socket could get a call of the method.
    pub(super) fn is_unserved(&self, room: Room) -> bool {
        self.servers(room).next().is_none()
    }

    /// Whether a daemon has registered the method since so many registrations.
    pub(super) fn is_back(&self, room: Room, registrations: u64) -> bool {
        self.rooms[room.0].iter().any(|member| member.registration > registrations)
    }

    pub(super) fn note_unserved(&mut self, room: Option<Room>) {
        for call in self.open.clone() {
            let record = &self.calls[call.0 as usize - 1];
            let is_concerned = room.is_none_or(|room| room == record.room);
            if record.sent.is_none() && !record.was_unserved && is_concerned && self.is_unserved(record.room) {
                self.record(call).was_unserved = true;
            }
        }
    }

    /// A socket is gone or silent.
    pub(super) fn lose(&mut self, socket: SocketId, cause: Departure, now: Time) {
        self.sockets.remove(&socket);
        for room in &mut self.rooms {
            room.retain(|member| member.socket != socket);
        }
        // One that has no methods any more has told of each, and is there all the same.
        if cause != Departure::Unregistered {
            self.sent_to(socket).for_each(|record| record.lose_target(cause, now));
        }
        for call in self.open.clone() {
            let record = self.record(call);
            record.has_caller_left |= record.caller == socket;
        }
        self.note_unserved(None);
    }

    /// The open calls that were sent to a socket.
    pub(super) fn sent_to(&mut self, socket: SocketId) -> impl Iterator<Item = &mut CallRecord> {
        let records = self.calls.iter_mut();
        records.filter(move |record| record.is_open && record.sent.is_some_and(|sent| sent.target == socket))
    }
}
