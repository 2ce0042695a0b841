//! What this replica knows of the others.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::AtomicBool},
};

use parking_lot::{Mutex, RwLock};
use pointwork_core::{Announcer, EndedSessions, PeerCommand, PeerDirectory, PeerSettings, Time};
use socketioxide_redis_streams::{
    Cluster, Standing,
    transport::redis::{Redis, RedisOptions},
};
use tokio::sync::Notify;

use super::news::{News, Subscriber};
use crate::{
    config::{ListenConfig, RedisConfig, RpcConfig},
    driver::{Clock, Driver, Machine},
};

/// The other replicas.
pub struct Replicas {
    pub(super) cluster: Cluster,
    redis: Option<Arc<Redis>>,
    pub(super) roster: Mutex<Announcer>,
    pub(super) book: Driver<Peers>,
    /// Held from a step of the book until all its commands are carried out: two tasks bring news, and subscribers need it in order.
    pub(super) order: Mutex<()>,
    pub(super) fences: Mutex<EndedSessions>,
    subscribers: RwLock<Vec<Subscriber>>,
    /// The peers that know that this replica drains.
    pub(super) noted: Mutex<HashSet<String>>,
    pub(super) is_leaving: AtomicBool,
    pub(super) policy_news: Arc<Notify>,
    /// Another replica changed the experiments.
    pub(super) experiments: Notify,
    pub(super) clock: Clock,
}

/// What the peers announced.
pub(super) struct Peers(pub(super) PeerDirectory<String>);

impl Machine for Peers {
    type Command = PeerCommand<String>;

    fn next_command(&mut self) -> Option<PeerCommand<String>> {
        self.0.next_command()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.0.poll_timeout()
    }
}

impl Replicas {
    /// Prepares the link to Redis. Without `redis.url` the replica is alone. Sends nothing before [`Replicas::start`].
    ///
    /// # Errors
    /// When `redis.url` cannot be used.
    pub fn new(config: &RedisConfig, listen: &ListenConfig, rpc: &RpcConfig) -> anyhow::Result<Arc<Self>> {
        // A socket may register as much elsewhere as here: every replica has the same setting.
        let bounds = PeerSettings {
            methods_per_socket_max: rpc.methods_per_socket_max.as_usize(),
            method_bytes_max: rpc.method_bytes_max.as_usize(),
            ..PeerSettings::default()
        };
        let settings = config.settings(listen);
        let Some(url) = &config.url else { return Ok(Self::with(Cluster::alone_with(settings), bounds)) };
        let options = RedisOptions { sharded: config.sharded_pubsub, ..RedisOptions::default() };
        let redis = Arc::new(Redis::start(url.expose(), options)?);
        Ok(Self::build(Cluster::new(redis.clone(), settings), Some(redis), bounds))
    }

    /// The replicas of a cluster.
    #[must_use]
    pub fn with(cluster: Cluster, bounds: PeerSettings) -> Arc<Self> {
        Self::build(cluster, None, bounds)
    }

    fn build(cluster: Cluster, redis: Option<Arc<Redis>>, bounds: PeerSettings) -> Arc<Self> {
        let clock = Clock::start();
        Arc::new(Self {
            cluster,
            redis,
            roster: Mutex::default(),
            book: Driver::new(Peers(PeerDirectory::new(bounds)), clock),
            order: Mutex::default(),
            fences: Mutex::default(),
            subscribers: RwLock::default(),
            noted: Mutex::default(),
            is_leaving: AtomicBool::new(false),
            policy_news: Arc::default(),
            experiments: Notify::new(),
            clock,
        })
    }

    /// The Redis of the cluster, if there is one.
    #[must_use]
    pub fn redis(&self) -> Option<&Arc<Redis>> {
        self.redis.as_ref()
    }

    /// Tells all news to `subscriber` from here on. It must not block, and must not subscribe anyone.
    pub(crate) fn subscribe(&self, subscriber: impl Fn(&News<'_>) + Send + Sync + 'static) {
        self.subscribers.write().push(Box::new(subscriber));
    }

    pub(super) fn tell(&self, news: &News<'_>) {
        self.subscribers.read().iter().for_each(|subscriber| subscriber(news));
    }

    /// What the adapter shares.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Why this replica does not know all daemons yet; `None` when it does.
    #[must_use]
    pub fn missing(&self) -> Option<&'static str> {
        let standing = self.cluster.standing();
        let is_unsynced = || self.book.peek(|peers| peers.0.unsynced() > 0);
        match standing {
            standing if !standing.linked => Some("redis: the link is down"),
            standing if !standing.complete => Some("cluster: not every replica was heard from yet"),
            _ if is_unsynced() => Some("cluster: a replica has not told its daemons yet"),
            _ => None,
        }
    }

    /// Writes the standing of this replica in its cluster to the metrics.
    pub(crate) fn publish(&self) {
        let Standing { linked, complete, .. } = self.cluster.standing();
        // Without the silent ones: they cannot be reached.
        let peers = self.cluster.peers().len();
        metrics::gauge!("pointwork_cluster_linked").set(f64::from(u8::from(linked)));
        metrics::gauge!("pointwork_cluster_complete").set(f64::from(u8::from(complete)));
        metrics::gauge!("pointwork_cluster_peers").set(peers as f64);
    }

    /// Wakes when the policies of the cluster may have changed: a peer says so, a peer is gone, or Redis is back.
    pub(crate) fn policy_news(&self) -> Arc<Notify> {
        self.policy_news.clone()
    }

    /// Waits until another replica may have changed the experiments.
    pub(crate) async fn experiments_news(&self) {
        self.experiments.notified().await;
    }
}
