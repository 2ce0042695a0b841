//! Closes the parts in order, after a signal.

use std::time::Duration;

use super::{
    assemble::Parts,
    drain::{Drain, Drained},
    listeners::Serving,
};
use crate::{config::DrainConfig, sockets};

/// How long connections may take to end after their sockets have closed.
const CLOSING_MAX: Duration = Duration::from_secs(2);

/// Drains, closes the listeners, then closes whatever writes to Redis, to files and to a collector.
pub(super) async fn shut_down(parts: &Parts, serving: Serving, settings: DrainConfig) -> Drained {
    let drain = Drain {
        io: parts.io.clone(),
        calls: parts.calls.clone(),
        replicas: parts.replicas.clone(),
        phase: parts.phase.clone(),
        settings,
    };
    let left = drain.run().await;
    serving.stop();
    sockets::root::leave(&parts.io);
    parts.devices.leave().await;
    let closed = async {
        parts.io.close().await;
        let _ = tokio::join!(serving.clients, serving.operators);
    };
    if tokio::time::timeout(CLOSING_MAX, closed).await.is_err() {
        tracing::warn!("connections were still open and are cut");
    }
    parts.records.close().await;
    parts.rollouts.leave().await;
    parts.replicas.cluster().close().await;
    if let Some(tracer) = parts.tracer.clone() {
        tracer.close().await;
    }
    left
}
