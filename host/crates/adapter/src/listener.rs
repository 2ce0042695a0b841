//! How an application follows its cluster.

use rmpv::Value;

use crate::peers::PeerEvent;

/// What an application is told of its cluster. The calls come from the cluster's own tasks, one after the other for each source, and
/// hold them up: they are to be quick and must not block.
pub trait Listener: Send + Sync + 'static {
    /// A number that grows with every note to all peers, told with each heartbeat: a peer that knows a lower one has missed
    /// notes. It is asked for right before the heartbeat is queued, so whatever it counts must be queued already.
    fn revision(&self) -> u64;

    /// Something became known of a peer or of the link. Locks are held meanwhile that [`Cluster::standing`](crate::Cluster::standing)
    /// takes: it must not be called from here.
    fn peer(&self, event: PeerEvent);

    /// A peer told something by [`Cluster::note`](crate::Cluster::note). Whatever one peer told comes in the order it was told, with
    /// gaps where the link was down.
    fn note(&self, peer: &str, number: u32, data: Value);

    /// The stream was trimmed or emptied before it was read: so many broadcasts were missed, `None` if nobody knows how many.
    fn missed(&self, broadcasts: Option<u64>);
}
