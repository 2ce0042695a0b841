//! The steps of a drain.

use std::sync::Arc;

use tokio::time::sleep;

use super::closing::{Closed, Closing};
use crate::{
    calls::Calls, cluster::Replicas, config::DrainConfig, edge::socketio::SocketIo, operate::drain_phase::Phase,
};

/// What takes part in a leave.
pub(crate) struct Drain {
    pub(crate) io: SocketIo,
    pub(crate) calls: Arc<Calls>,
    pub(crate) replicas: Arc<Replicas>,
    pub(crate) phase: Phase,
    pub(crate) settings: DrainConfig,
}

/// What a leave came to.
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
    /// Leaves; done when no socket is left, or those that are left do not end.
    pub(crate) async fn run(&self) -> Drained {
        self.phase.settles();
        let (open, begun) = (self.open_calls(), self.calls_begun());
        let is_alone = self.is_alone();
        if !is_alone {
            sleep(self.settings.settle()).await;
        }
        self.phase.closes();
        if !is_alone {
            self.replicas.leaving();
        }
        self.calls.draining(0, true);
        let Closed { sockets: sockets_closed, calls_begun, calls_broken_off } =
            Closing::new(self, is_alone).run().await;
        let came = usize::try_from(calls_begun.saturating_sub(begun)).unwrap_or(usize::MAX);
        let calls_finished = open.saturating_add(came).saturating_sub(calls_broken_off);
        Drained { sockets_closed, calls_finished, calls_broken_off }
    }

    /// Whether there is nowhere to go for anybody.
    fn is_alone(&self) -> bool {
        let standing = self.replicas.cluster().standing();
        standing.peers as u64 + standing.foreign == 0
    }

    /// Calls of this replica's callers, and those of others to its daemons.
    pub(super) fn open_calls(&self) -> usize {
        self.calls.open_calls() + self.replicas.cluster().serving()
    }

    /// How many of those there were since the start.
    pub(super) fn calls_begun(&self) -> u64 {
        self.calls.calls_taken() + self.replicas.cluster().served()
    }
}
