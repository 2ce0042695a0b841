//! Leaves when it is asked to stop, without breaking off calls and without a stampede of those who have to go elsewhere.
//!
//! The probe says so at once, and for `drain.settle_ms` nothing else happens: whoever the load balancer still sends is let in, and
//! daemons get their calls, for they do not know yet that they have to move. Then others are told that no more calls are wanted here, and from
//! here on calls wait for daemons: so those are closed first, each when nothing is in flight to it, and are back elsewhere within
//! the grace. Callers follow when their calls have ended. What has not ended by `drain.deadline_ms` is broken off.

mod closing;
mod turns;

use std::sync::Arc;

use tokio::time::sleep;

use self::closing::{Closed, Closing};
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
pub(crate) struct Left {
    /// Connections that were closed.
    pub(crate) sockets_closed: usize,
    /// Calls that ended between the signal and the deadline, whenever they came.
    pub(crate) calls_finished: usize,
    /// Calls that had not ended by the deadline.
    pub(crate) calls_broken_off: usize,
}

impl Drain {
    /// Leaves; done when no socket is left, or those that are left do not end.
    pub(crate) async fn run(&self) -> Left {
        self.phase.settles();
        let (open, begun) = (self.open_calls(), self.calls_begun());
        let is_alone = self.is_alone();
        if !is_alone {
            sleep(self.settings.settle_ms.as_millis()).await;
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
        Left { sockets_closed, calls_finished, calls_broken_off }
    }

    /// Whether there is nowhere to go for anybody.
    fn is_alone(&self) -> bool {
        let standing = self.replicas.cluster().standing();
        standing.peers as u64 + standing.foreign == 0
    }

    /// Calls of this replica's callers, and those of others to its daemons.
    fn open_calls(&self) -> usize {
        self.calls.open_calls() + self.replicas.cluster().serving()
    }

    /// How many of those there were since the start.
    fn calls_begun(&self) -> u64 {
        self.calls.calls_taken() + self.replicas.cluster().served()
    }
}
