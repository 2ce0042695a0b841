//! A replica's part in a cluster: its identity, its namespaces, and the tasks that connect it to the other replicas.

mod following;
mod heartbeat_task;
mod link;
mod namespace;
mod namespace_requests;
mod receiver;
mod subscriber_counts;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmpv::Value;

use self::link::{ClusterLink, Replica};
use crate::broadcasts::FollowedStream;
use crate::error::ClusterError;
use crate::membership::Listener;
use crate::settings::Settings;
use crate::transport::Transport;
use crate::wire::{FAREWELL, NOTE_MIN};

pub use self::following::Following;
pub use self::namespace::Namespace;
pub(crate) use self::namespace_requests::single_response_flags;

/// How long [`Cluster::close`] waits until the last messages are sent.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A replica's part in a cluster. Cheap to clone. The adapter of each namespace holds one.
#[derive(Clone)]
pub struct Cluster(Arc<Replica>);

/// The state of a replica in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Redis can be reached, messages come back from it, and every channel is subscribed.
    pub linked: bool,
    /// Every replica of this kind was heard from, or had enough time for it.
    pub complete: bool,
    /// How many other replicas of this kind are known.
    pub peers: usize,
    /// How many servers of another kind (Node) share the root namespace.
    pub foreign: u64,
}

impl Cluster {
    /// A replica that shares no cluster: it delivers everything to its own sockets.
    #[must_use]
    pub fn alone() -> Self {
        Self::alone_with(Settings::default())
    }

    /// A replica that shares no cluster. Only the settings about sockets that follow have an effect.
    #[must_use]
    pub fn alone_with(settings: Settings) -> Self {
        Self::build(None, settings)
    }

    /// A replica that shares a cluster through `transport`. Nothing is sent or received before [`Cluster::start`].
    #[must_use]
    pub fn new(transport: Arc<dyn Transport>, settings: Settings) -> Self {
        Self::build(Some(transport), settings)
    }

    fn build(transport: Option<Arc<dyn Transport>>, settings: Settings) -> Self {
        let uid = format!("{:016x}", fastrand::u64(..));
        let followed = Arc::new(FollowedStream::new(&settings, transport.is_none()));
        let (settings, namespaces) = (Arc::new(settings), Arc::default());
        let link =
            transport.map(|transport| Arc::new(ClusterLink::new(&uid, &settings, transport, &namespaces, &followed)));
        Cluster(Arc::new(Replica { uid, settings, namespaces, followed, link }))
    }

    /// Sets the listener for peers and notes. Only the first call has an effect. Call it before [`Cluster::start`].
    pub fn listen(&self, listener: Arc<dyn Listener>) {
        if let Some(link) = &self.0.link {
            link.peers.set_listener(listener);
        }
    }

    /// Starts the tasks. They run on the current runtime until [`Cluster::close`].
    pub fn start(&self) {
        if let Some(link) = &self.0.link {
            link.writers.spawn(link.writer().run());
            tokio::spawn(receiver::run(link.clone()));
            tokio::spawn(link.stream_reader().run(link.stop.clone()));
            tokio::spawn(subscriber_counts::run(link.clone()));
        }
    }

    /// Tells the peers that this replica shuts down, sends the messages that wait, and ends the tasks.
    pub async fn close(&self) {
        let Some(link) = &self.0.link else { return };
        // Only the first call closes the tracker.
        if !link.writers.close() {
            return;
        }
        link.stop.cancel();
        let _ = link.publisher.publish_to_replicas(None, FAREWELL, Value::Nil);
        link.publisher.outbox.close();
        if tokio::time::timeout(CLOSE_TIMEOUT, link.writers.wait()).await.is_err() {
            tracing::warn!("the last messages did not get to Redis");
        }
        link.source.transport.close().await;
    }

    /// The uid of the replica on the wire: sixteen hex digits, new at every start.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.0.uid
    }

    /// Whether the replica shares no cluster.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.0.link.is_none()
    }

    /// The present state of the replica. A replica that shares no cluster is linked and complete.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let Some(link) = &self.0.link else {
            return Standing { linked: true, complete: true, ..Standing::default() };
        };
        link.peers.read(|peers, now| Standing {
            linked: peers.is_linked() && !link.is_subscribing(),
            complete: peers.is_complete(now),
            peers: peers.uids().count(),
            foreign: link.peers.foreign_servers(),
        })
    }

    /// The uids of the other replicas of this kind that are not silent.
    #[must_use]
    pub fn peers(&self) -> Vec<String> {
        let present = |link: &Arc<ClusterLink>| link.peers.read(|peers, _| peers.present().cloned().collect());
        self.0.link.as_ref().map(present).unwrap_or_default()
    }

    /// Whether another replica of this kind is known. It may be silent.
    #[must_use]
    pub fn knows(&self, peer: &str) -> bool {
        self.0.link.as_ref().is_some_and(|link| link.peers.read(|peers, _| peers.knows(peer)))
    }

    /// The rooms of the requests of other servers that wait for acknowledgements here. A request to one socket has the room of its id.
    #[must_use]
    pub fn served_rooms(&self) -> HashSet<String> {
        self.0.link.as_ref().map(|link| link.server.served.rooms()).unwrap_or_default()
    }

    /// How many requests of other servers wait for acknowledgements here.
    #[must_use]
    pub fn serving(&self) -> usize {
        self.0.link.as_ref().map_or(0, |link| link.server.served.count())
    }

    /// How many such requests there were since the replica started.
    #[must_use]
    pub fn served(&self) -> u64 {
        self.0.link.as_ref().map_or(0, |link| link.server.served.total())
    }

    /// A namespace of this replica, as the cluster sees it.
    #[must_use]
    pub fn namespace(&self, path: &str) -> Arc<Namespace> {
        Arc::new(Namespace::new(self.0.clone(), path))
    }

    /// Sends a note of the application to all peers (`None`) or to one. Their [`Listener`] gets the notes in order. Node's servers do
    /// not get them. A note is lost if the link is down.
    ///
    /// # Errors
    /// If the outbox does not take it.
    ///
    /// # Panics
    /// In debug builds, if `number` is below [`NOTE_MIN`].
    pub fn note(&self, peer: Option<&str>, number: u32, data: Value) -> Result<(), ClusterError> {
        debug_assert!(number >= NOTE_MIN, "the numbers below are taken");
        let Some(link) = &self.0.link else { return Ok(()) };
        link.publisher.publish_to_replicas(peer, number, data)
    }
}
