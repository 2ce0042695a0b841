//! Records what is true of sockets and processes.

use pointwork_core::SocketId;
use pointwork_core::decisions::Departure;

use crate::calls::events::{Connection, Process, connection};
use crate::calls::rooms::Room;
use crate::time::WorldTime;

#[derive(Default)]
pub(super) struct GroundTruth {
    pub(super) processes: Vec<ProcessTruth>,
    pub(super) sockets: Vec<SocketTruth>,
}

#[derive(Default)]
pub(super) struct ProcessTruth {
    pub(super) has_ended: bool,
    /// Redis does not count it as subscribed.
    pub(super) is_cut: bool,
    /// When it came back the last time.
    pub(super) cut_until: WorldTime,
}

#[derive(Default)]
pub(super) struct SocketTruth {
    pub(super) process: Process,
    pub(super) has_left: bool,
    /// Its client has given it up.
    pub(super) is_deserted: bool,
    pub(super) rooms: u8,
    /// The rooms it has ever taken back.
    pub(super) taken_back: u8,
    /// At some time it had taken back all methods that it had registered.
    pub(super) was_unserved: bool,
}

impl GroundTruth {
    pub(super) fn connection_made(&mut self, process: Process) -> Connection {
        self.sockets.push(SocketTruth { process, ..SocketTruth::default() });
        self.sockets.len() - 1
    }

    pub(super) fn process_of(&self, socket: SocketId) -> Option<Process> {
        self.sockets.get(connection(socket)).map(|socket| socket.process)
    }

    /// Whether a socket has really left for this cause, or has taken back this room.
    pub(super) fn is_so(&self, connection: Connection, cause: Departure, room: Option<Room>) -> bool {
        let Some(socket) = self.sockets.get(connection) else { return false };
        let process = &self.processes[socket.process];
        match cause {
            Departure::ReplicaSilent => true,
            Departure::ReplicaLost => process.has_ended || process.is_cut,
            Departure::Unregistered => match room {
                Some(room) => socket.has_left || socket.taken_back & room.bit() != 0,
                None => socket.has_left || socket.was_unserved,
            },
            // Of a socket that is not named any more this is the likeliest.
            Departure::TransportLost => socket.has_left || socket.is_deserted || socket.was_unserved,
            Departure::Closed | Departure::Drained | Departure::Evicted => socket.has_left,
            Departure::NeverSeen => false,
        }
    }

    /// Whether the target of a call may be gone since a moment: it or its client has left, it has taken the method
    /// back, or its process has ended or was cut off.
    pub(super) fn may_be_gone(&self, connection: Connection, room: Room, since: WorldTime) -> bool {
        let Some(socket) = self.sockets.get(connection) else { return false };
        let process = &self.processes[socket.process];
        let is_cut = process.is_cut || process.cut_until >= since;
        let has_left = socket.has_left || socket.is_deserted;
        has_left || socket.taken_back & room.bit() != 0 || process.has_ended || is_cut
    }
}
