//! What a drain asks about calls: which sockets are daemons, and which calls are still open.

use std::sync::atomic::Ordering;

use pointwork_core::room;

use super::state::{Calls, Participant};
use crate::edge::socketio::{SocketRef, socket_id};

impl Calls {
    /// Servers of another kind find a daemon by its rooms: they are not to find this one any more.
    pub(crate) fn hide(&self, socket: &SocketRef, participant: &Participant) {
        let rooms: Vec<_> = self.shards[participant.shard].peek(|state| {
            let methods = state.machine.directory().methods(socket_id(socket.id));
            methods.map(|method| room::rpc(&participant.user, method)).collect()
        });
        socket.leave(rooms);
    }

    /// Whether a socket of this replica has registered a method.
    pub(crate) fn is_daemon(&self, socket: &SocketRef, participant: &Participant) -> bool {
        let socket = socket_id(socket.id);
        self.shards[participant.shard].peek(|state| state.machine.directory().methods(socket).next().is_some())
    }

    /// How many calls of this replica's own callers need a socket of it: those in flight to it, and those that it made itself, which may
    /// wait unless `only_in_flight`.
    pub(crate) fn calls_of(&self, socket: &SocketRef, participant: &Participant, only_in_flight: bool) -> usize {
        let socket = socket_id(socket.id);
        self.shards[participant.shard]
            .peek(|state| state.machine.in_flight(socket) + state.machine.made_by(socket, only_in_flight))
    }

    /// How many calls of this replica's own callers are open.
    pub(crate) fn open_calls(&self) -> usize {
        self.shards.iter().map(|shard| shard.peek(|state| state.open_calls.len())).sum()
    }

    /// How many calls of this replica's own callers were taken on since it started.
    pub(crate) fn calls_taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}
