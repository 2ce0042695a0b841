//! The daemons of other replicas, as the book tells of them.

use std::sync::Arc;

use pointwork_core::{PeerCommand, SocketId, decisions::Traits};

use crate::{
    calls::{
        call::location::{RemoteSocket, SocketLocation},
        state::{Calls, SHARDS},
    },
    cluster::News,
};

impl Calls {
    /// Whether other replicas can be reached.
    pub(crate) fn link(self: &Arc<Self>, up: bool) {
        for index in 0..SHARDS {
            self.drive_shard_aside(index, |state, now| state.machine.handle_link(up, now));
        }
    }

    /// Whether a replica (0: this one) shuts down in order.
    pub(crate) fn draining(self: &Arc<Self>, replica: u32, is_draining: bool) {
        for index in 0..SHARDS {
            self.drive_shard_aside(index, |state, now| state.machine.handle_draining(replica, is_draining, now));
        }
    }

    /// Something became known of a daemon of another replica; `owner` knows whose it is.
    pub(crate) fn remote(
        self: &Arc<Self>,
        command: PeerCommand<String>,
        owner: impl FnOnce(SocketId) -> Option<String>,
    ) {
        match command {
            PeerCommand::AskSnapshot { .. } => {}
            PeerCommand::Connect { socket, user, replica, resumable } => {
                let (Some(owner), Some(id)) = (owner(socket), text(socket)) else { return };
                let location = RemoteSocket { owner: owner.into(), id };
                let traits = Traits { local: false, resumable, ..Traits::default() };
                self.drive_shard_aside(self.shard_of(&user), |state, now| {
                    state.sockets.insert(socket, SocketLocation::There(location));
                    state.machine.handle_connect(socket, user, replica, traits, now);
                });
            }
            PeerCommand::Register { socket, user, method, age } => {
                self.methods.registered(&method, || pointwork_policy::user_key(&user));
                let registered = self.drive_shard_aside(self.shard_of(&user), |state, now| {
                    state.machine.handle_registered(socket, method, age, now)
                });
                if let Err(error) = registered {
                    metrics::counter!("pointwork_remote_refused_total").increment(1);
                    tracing::debug!(%error, "a method of another replica's daemon was not taken");
                }
            }
            PeerCommand::Unregister { socket, user, method } => {
                self.drive_shard_aside(self.shard_of(&user), |state, now| {
                    // Of a socket that is not known here there is nothing to take back.
                    let _ = state.machine.handle_unregister(socket, &method, now);
                });
            }
            PeerCommand::Gone { socket, user, cause } => {
                self.drive_shard_aside(self.shard_of(&user), |state, now| {
                    state.sockets.remove(&socket);
                    state.machine.handle_disconnect(socket, cause, now);
                });
            }
        }
    }
}

/// Brings the news of the cluster to the calls.
pub(in crate::calls) fn subscribe(calls: &Arc<Calls>) {
    let weak = Arc::downgrade(calls);
    calls.replicas.subscribe(move |news| {
        let Some(calls) = weak.upgrade() else { return };
        match news {
            News::Link { up } => calls.link(*up),
            News::Daemons { command, owner } => calls.remote((*command).clone(), owner),
            News::Draining { replica, is_draining } => calls.draining(*replica, *is_draining),
            News::Resumed(resumed) => calls.resume(resumed),
            News::RedisEmptied | News::ReplicaGone { .. } => {}
        }
    });
}

/// A socket's id as its replica knows it; `None` if it is none, which another replica may have made up.
fn text(socket: SocketId) -> Option<Arc<str>> {
    let bytes = socket.0.to_be_bytes();
    std::str::from_utf8(&bytes).ok().map(Arc::from)
}
