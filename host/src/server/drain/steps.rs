//! The steps of a drain, in order.

use tokio::time::sleep;

use super::{
    closing::{Closed, Closing},
    parts::{Drain, Drained},
};

impl Drain {
    /// Drains. Ends when no socket is left, or when those that are left do not close in time.
    pub(crate) async fn run(&self) -> Drained {
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
        Drained { sockets_closed, calls_finished, calls_broken_off }
    }
}
