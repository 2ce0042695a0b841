//! Counts the subscribers of the replicas' channels, to find replicas that are gone and servers of another kind.

use std::sync::Arc;

use tokio::time::{Duration, sleep};

use super::link::ClusterLink;
use crate::transport::{FailureLog, TransportError};
use crate::wire::{Channels, REPLICAS_NSP};

/// The pause before the count that confirms that a peer is gone.
const CONFIRM_AFTER: Duration = Duration::from_millis(20);

/// Runs until the replica leaves the cluster.
pub(super) async fn run(link: Arc<ClusterLink>) {
    let mut failures = FailureLog::of("count subscriptions");
    while !link.stop.is_cancelled() {
        match count(&link).await {
            Ok(()) => failures.end(),
            Err(error) => failures.note(&error),
        }
        let is_suspicious = link.peers.read(|peers, _| peers.is_suspicious());
        sleep(if is_suspicious { CONFIRM_AFTER } else { link.settings().probe }).await;
    }
}

async fn count(link: &ClusterLink) -> Result<(), TransportError> {
    let prefix = &link.settings().channel_prefix;
    let peers = link.peers.uids();
    let replicas = link.publisher.replica_channels.public.clone();
    let private = peers.iter().map(|peer| Channels::private_of(prefix, REPLICAS_NSP, peer));
    let channels = [replicas, Channels::public_of(prefix, "/")].into_iter().chain(private).collect();
    let counts = link.transport().subscribers(channels).await?;
    let [total, root, each @ ..] = counts.as_slice() else { return Ok(()) };
    let each: Vec<(String, u64)> = peers.into_iter().zip(each.iter().copied()).collect();
    link.peers.set_foreign_servers(root.saturating_sub(*total));
    link.peers.step(|peers, now| peers.handle_subscribers(*total, &each, now));
    Ok(())
}
