//! What is true of sockets and processes, whoever knows it.

use pointwork_core::SocketId;
use pointwork_core::decision::Departure;

use super::Auditor;
use crate::agenda::Moment;
use crate::event::{Connection, Process, connection};
use crate::room::Room;

/// What is true.
#[derive(Default)]
pub(super) struct Truth {
    pub(super) processes: Vec<ProcessTruth>,
    sockets: Vec<SocketTruth>,
}

#[derive(Default)]
pub(super) struct ProcessTruth {
    pub(super) has_ended: bool,
    /// Redis does not count it as subscribed.
    is_cut: bool,
    /// When it came back the last time.
    cut_until: Moment,
}

struct SocketTruth {
    process: Process,
    has_left: bool,
    /// Its client has given it up.
    is_deserted: bool,
    rooms: u8,
    /// The rooms it has ever taken back.
    taken_back: u8,
    /// It had registered something, and took the last of it back, at some time.
    was_bare: bool,
}

impl Truth {
    pub(super) fn connection_made(&mut self, process: Process) -> Connection {
        self.sockets.push(SocketTruth {
            process,
            has_left: false,
            is_deserted: false,
            rooms: 0,
            taken_back: 0,
            was_bare: false,
        });
        self.sockets.len() - 1
    }

    pub(super) fn process_of(&self, socket: SocketId) -> Option<Process> {
        self.sockets.get(connection(socket)).map(|socket| socket.process)
    }

    /// Whether what somebody was told of a socket is so: a cause, and the room it is about if it is about one.
    fn is_so(&self, connection: Connection, cause: Departure, room: Option<Room>) -> bool {
        let Some(socket) = self.sockets.get(connection) else { return false };
        let process = &self.processes[socket.process];
        match cause {
            Departure::ReplicaSilent => true,
            Departure::ReplicaLost => process.has_ended || process.is_cut,
            Departure::Unregistered => match room {
                Some(room) => socket.has_left || socket.taken_back & room.bit() != 0,
                None => socket.has_left || socket.was_bare,
            },
            // Of a socket that is not named any more this is the likeliest.
            Departure::TransportLost => socket.has_left || socket.is_deserted || socket.was_bare,
            Departure::Closed | Departure::Drained | Departure::Evicted => socket.has_left,
            Departure::NeverSeen => false,
        }
    }

    /// Whether the socket has left, or its client has, or has taken the method back, or its process has ended or was cut off since a moment.
    pub(super) fn may_be_gone(&self, connection: Connection, room: Room, since: Moment) -> bool {
        let Some(socket) = self.sockets.get(connection) else { return false };
        let process = &self.processes[socket.process];
        let is_cut = process.is_cut || process.cut_until >= since;
        let has_left = socket.has_left || socket.is_deserted;
        has_left || socket.taken_back & room.bit() != 0 || process.has_ended || is_cut
    }
}

impl Auditor {
    /// Redis counts a process as subscribed, or does not any more.
    pub(crate) fn subscribed(&mut self, process: Process, is_subscribed: bool) {
        let truth = &mut self.truth.processes[process];
        if is_subscribed && truth.is_cut {
            truth.cut_until = self.moment;
        }
        truth.is_cut = !is_subscribed;
    }

    /// A process lets a socket go.
    pub(crate) fn truly_left(&mut self, connection: Connection) {
        self.truth.sockets[connection].has_left = true;
    }

    /// A client has no use for a connection any more.
    pub(crate) fn deserted(&mut self, connection: Connection) {
        self.truth.sockets[connection].is_deserted = true;
    }

    /// A process registers a method for a socket of its own.
    pub(crate) fn truly_registered(&mut self, connection: Connection, room: Room) {
        self.truth.sockets[connection].rooms |= room.bit();
    }

    /// A process takes a method of a socket of its own back.
    pub(crate) fn truly_unregistered(&mut self, connection: Connection, room: Room) {
        let socket = &mut self.truth.sockets[connection];
        if socket.rooms & room.bit() != 0 {
            socket.rooms &= !room.bit();
            socket.taken_back |= room.bit();
            socket.was_bare |= socket.rooms == 0;
        }
    }

    /// What a process is told of a socket of another must be so.
    pub(super) fn demand_truth(&mut self, connection: Connection, cause: Departure, room: Option<Room>) {
        let is_so = self.truth.is_so(connection, cause, room);
        self.demand(is_so, "true-news", || format!("socket {} is said to be gone, {cause:?}", connection + 1));
    }
}
