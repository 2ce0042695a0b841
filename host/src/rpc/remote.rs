//! The daemons of other replicas, as the book tells of them.

use std::sync::{Arc, atomic::Ordering};

use pointwork_core::{BookCommand, SocketId, decision::Traits, room};

use super::{
    Party, Rpc, SHARDS,
    shard::{RemoteSeat, Seat},
    socket_id,
};
use crate::io::SocketRef;

impl Rpc {
    /// Whether other replicas can be reached.
    pub(crate) fn link(self: &Arc<Self>, up: bool) {
        for index in 0..SHARDS {
            self.drive_shard_aside(index, |state, now| state.switchboard.handle_link(up, now));
        }
    }

    /// Whether a replica (0: this one) shuts down in order.
    pub(crate) fn draining(self: &Arc<Self>, replica: u32, is_draining: bool) {
        for index in 0..SHARDS {
            self.drive_shard_aside(index, |state, now| state.switchboard.handle_draining(replica, is_draining, now));
        }
    }

    /// Servers of another kind find a daemon by its rooms: they are not to find this one any more.
    pub(crate) fn hide(&self, socket: &SocketRef, party: &Party) {
        let rooms: Vec<_> = self.shards[party.shard].peek(|state| {
            let methods = state.switchboard.directory().methods(socket_id(socket.id));
            methods.map(|method| room::rpc(&party.user, method)).collect()
        });
        socket.leave(rooms);
    }

    /// Whether a socket of this replica has registered a method.
    pub(crate) fn is_daemon(&self, socket: &SocketRef, party: &Party) -> bool {
        let socket = socket_id(socket.id);
        self.shards[party.shard].peek(|state| state.switchboard.directory().methods(socket).next().is_some())
    }

    /// How many calls of this replica's own callers need a socket of it: those in flight to it, and those that it made itself, which may
    /// wait unless `only_in_flight`.
    pub(crate) fn calls_of(&self, socket: &SocketRef, party: &Party, only_in_flight: bool) -> usize {
        let socket = socket_id(socket.id);
        self.shards[party.shard]
            .peek(|state| state.switchboard.in_flight(socket) + state.switchboard.made_by(socket, only_in_flight))
    }

    /// How many calls of this replica's own callers are open.
    pub(crate) fn open_calls(&self) -> usize {
        self.shards.iter().map(|shard| shard.peek(|state| state.held.len())).sum()
    }

    /// How many calls of this replica's own callers were taken on since it started.
    pub(crate) fn calls_taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Something became known of a daemon of another replica; `owner` knows whose it is.
    pub(crate) fn remote(
        self: &Arc<Self>,
        command: BookCommand<String>,
        owner: impl FnOnce(SocketId) -> Option<String>,
    ) {
        match command {
            BookCommand::AskSnapshot { .. } => {}
            BookCommand::Connect { socket, user, replica, resumable } => {
                let (Some(owner), Some(id)) = (owner(socket), text(socket)) else { return };
                let seat = RemoteSeat { owner: owner.into(), id };
                let traits = Traits { local: false, resumable, ..Traits::default() };
                self.drive_shard_aside(self.shard_of(&user), |state, now| {
                    state.sockets.insert(socket, Seat::There(seat));
                    state.switchboard.handle_connect(socket, user, replica, traits, now);
                });
            }
            BookCommand::Register { socket, user, method, age } => {
                self.methods.registered(&method, || pointwork_policy::user_key(&user));
                let registered = self.drive_shard_aside(self.shard_of(&user), |state, now| {
                    state.switchboard.handle_registered(socket, method, age, now)
                });
                if let Err(error) = registered {
                    metrics::counter!("pointwork_remote_refused_total").increment(1);
                    tracing::debug!(%error, "a method of another replica's daemon was not taken");
                }
            }
            BookCommand::Unregister { socket, user, method } => {
                self.drive_shard_aside(self.shard_of(&user), |state, now| {
                    // Of a socket that is not known here there is nothing to take back.
                    let _ = state.switchboard.handle_unregister(socket, &method, now);
                });
            }
            BookCommand::Gone { socket, user, cause } => {
                self.drive_shard_aside(self.shard_of(&user), |state, now| {
                    state.sockets.remove(&socket);
                    state.switchboard.handle_disconnect(socket, cause, now);
                });
            }
        }
    }
}

/// A socket's id as its replica knows it; `None` if it is none, which another replica may have made up.
fn text(socket: SocketId) -> Option<Arc<str>> {
    let bytes = socket.0.to_be_bytes();
    std::str::from_utf8(&bytes).ok().map(Arc::from)
}
