//! What takes part in a drain, and which calls are still open.

use std::sync::Arc;

use crate::{
    calls::Calls, cluster::Replicas, config::DrainConfig, edge::socketio::SocketIo, operate::drain_phase::Phase,
};

/// What takes part in a drain.
pub(crate) struct Drain {
    pub(crate) io: SocketIo,
    pub(crate) calls: Arc<Calls>,
    pub(crate) replicas: Arc<Replicas>,
    pub(crate) phase: Phase,
    pub(crate) settings: DrainConfig,
}

/// The result of a drain.
#[derive(Debug, Default)]
pub(crate) struct Drained {
    /// Connections that were closed.
    pub(crate) sockets_closed: usize,
    /// Calls that ended between the signal and the deadline, whenever they came.
    pub(crate) calls_finished: usize,
    /// Calls that had not ended by the deadline.
    pub(crate) calls_broken_off: usize,
}

impl Drain {
    /// Whether clients have no other replica to go to.
    pub(super) fn is_alone(&self) -> bool {
        let standing = self.replicas.cluster().standing();
        standing.peers as u64 + standing.foreign == 0
    }

    /// Open calls of this replica's callers, and of other replicas' callers to its daemons.
    pub(super) fn open_calls(&self) -> usize {
        self.calls.open_calls() + self.replicas.cluster().serving()
    }

    /// How many of those calls there were since the start.
    pub(super) fn calls_begun(&self) -> u64 {
        self.calls.calls_taken() + self.replicas.cluster().served()
    }
}
