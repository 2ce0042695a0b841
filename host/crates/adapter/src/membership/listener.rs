//! The events that an application gets about its cluster.

use rmpv::Value;

use super::peers::PeerEvent;

/// An application's listener. The cluster's own tasks call it and wait for it, so it must be quick and must not block. Calls from one
/// source come one after the other.
pub trait Listener: Send + Sync + 'static {
    /// A number that grows with every note to all peers. Each heartbeat carries it, so a peer that knows a lower number has missed
    /// notes. It is read right before the heartbeat is queued: a note must be queued before it is counted here.
    fn revision(&self) -> u64;

    /// The state of a peer or of the link changed. [`Cluster::standing`](crate::Cluster::standing) must not be called from here,
    /// because it takes a lock that is held during this call.
    fn peer(&self, event: PeerEvent);

    /// A peer sent a note with [`Cluster::note`](crate::Cluster::note). The notes of one peer arrive in their order. Notes are missing
    /// if the link was down.
    fn note(&self, peer: &str, number: u32, data: Value);

    /// The stream was trimmed or emptied before this replica read it. So many broadcasts are missed; `None` if the number is unknown.
    fn missed(&self, broadcasts: Option<u64>);
}
