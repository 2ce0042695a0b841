//! The other replicas: what this one tells them of its daemons, and what it hears of theirs.
//!
//! Every replica holds the whole directory, so finding a daemon is a local read. What a replica's own sockets register is
//! numbered and noted to all ([`Roster`]); what others noted is kept in the [`Book`], which feeds the call machine. Whatever may be
//! lost on the way shows as a hole in the numbers, and the peer is asked for a snapshot.

pub(crate) mod device_store;
mod news;
mod note;
#[cfg(test)]
pub(crate) mod redis_server;
pub(crate) mod scripts;
mod sessions;

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use pointwork_core::{
    Book, BookCommand, BookSettings, Fences, Roster, SocketId, Time, announcement::Numbered, decision::Departure,
};
use socketioxide_redis_streams::{
    Cluster, Listener, Loss, PeerEvent, Standing,
    transport::redis::{Redis, RedisOptions},
};
use tokio::sync::Notify;
use tokio::time::sleep;

use self::news::Subscriber;
pub(crate) use self::{news::News, note::Resumed};
use crate::{
    config::{ListenConfig, RedisConfig, RpcConfig},
    driver::Clock,
};

/// About how large a part of a snapshot is.
const PART_BYTES: usize = 256 << 10;
/// How often the book is looked at for peers that have not answered.
const LOOK: Duration = Duration::from_millis(250);

/// The other replicas.
pub struct Replicas {
    cluster: Cluster,
    redis: Option<Arc<Redis>>,
    roster: Mutex<Roster>,
    book: Mutex<Book<String>>,
    fences: Mutex<Fences>,
    subscribers: RwLock<Vec<Subscriber>>,
    /// The peers that know that this replica is leaving.
    noted: Mutex<HashSet<String>>,
    is_leaving: AtomicBool,
    policy_news: Arc<Notify>,
    /// Another replica changed the experiments.
    experiments: Notify,
    clock: Clock,
}

impl Replicas {
    /// Prepares the link to Redis, or a replica that is alone when there is none. Nothing is sent before
    /// [`Replicas::start`].
    ///
    /// # Errors
    /// When `redis.url` cannot be used.
    pub fn new(config: &RedisConfig, listen: &ListenConfig, rpc: &RpcConfig) -> anyhow::Result<Arc<Self>> {
        // What a socket may register here is what others may announce: the same setting on every replica.
        let bounds = BookSettings {
            methods_per_socket_max: rpc.methods_per_socket_max.as_usize(),
            method_bytes_max: rpc.method_bytes_max.as_usize(),
            ..BookSettings::default()
        };
        let settings = config.settings(listen);
        let Some(url) = &config.url else { return Ok(Self::with(Cluster::alone_with(settings), bounds)) };
        let options = RedisOptions { sharded: config.sharded_pubsub, ..RedisOptions::default() };
        let redis = Redis::start(url.expose(), options)?;
        let redis = Arc::new(redis);
        Ok(Self::build(Cluster::new(redis.clone(), settings), Some(redis), bounds))
    }

    /// The replicas of a cluster.
    #[must_use]
    pub fn with(cluster: Cluster, bounds: BookSettings) -> Arc<Self> {
        Self::build(cluster, None, bounds)
    }

    fn build(cluster: Cluster, redis: Option<Arc<Redis>>, bounds: BookSettings) -> Arc<Self> {
        Arc::new(Self {
            cluster,
            redis,
            roster: Mutex::default(),
            book: Mutex::new(Book::new(bounds)),
            fences: Mutex::default(),
            subscribers: RwLock::default(),
            noted: Mutex::default(),
            is_leaving: AtomicBool::new(false),
            policy_news: Arc::default(),
            experiments: Notify::new(),
            clock: Clock::start(),
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

    fn tell(&self, news: &News<'_>) {
        self.subscribers.read().iter().for_each(|subscriber| subscriber(news));
    }

    /// Takes part in the cluster: those who subscribed hear of the other replicas from here on.
    pub fn start(self: &Arc<Self>) {
        if self.cluster.is_alone() {
            return;
        }
        self.tell(&News::Link { up: false });
        self.cluster.listen(self.clone());
        self.cluster.start();
        let this = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(replicas) = this.upgrade() {
                replicas.turn(|book, now| book.handle_timeout(now));
                drop(replicas);
                sleep(LOOK).await;
            }
        });
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
        let is_unsynced = || self.book.lock().unsynced() > 0;
        match standing {
            standing if !standing.linked => Some("redis: the link is down"),
            standing if !standing.complete => Some("cluster: not every replica was heard from yet"),
            _ if is_unsynced() => Some("cluster: a replica has not told its daemons yet"),
            _ => None,
        }
    }

    /// Brings how this replica stands in its cluster to the metrics.
    pub(crate) fn publish(&self) {
        let Standing { linked, complete, .. } = self.cluster.standing();
        // Of those that are known, one that is silent cannot be reached, and is not to be counted as if it were.
        let peers = self.cluster.peers().len();
        metrics::gauge!("pointwork_cluster_linked").set(f64::from(u8::from(linked)));
        metrics::gauge!("pointwork_cluster_complete").set(f64::from(u8::from(complete)));
        metrics::gauge!("pointwork_cluster_peers").set(peers as f64);
    }

    /// A socket of this replica registered a method; `resumable`: it can hand in a result after a reconnect.
    pub(crate) fn joined(&self, socket: SocketId, user: &Arc<str>, resumable: bool, method: &Arc<str>) {
        let now = self.clock.now();
        self.announce(|roster| roster.join(socket, user.clone(), resumable, method.clone(), now));
    }

    /// A socket of this replica took a method back.
    pub(crate) fn left(&self, socket: SocketId, method: &Arc<str>) {
        self.announce(|roster| roster.leave(socket, method));
    }

    /// A socket of this replica is gone.
    pub(crate) fn gone(&self, socket: SocketId, cause: Departure) {
        self.announce(|roster| roster.gone(socket, cause));
    }

    /// A daemon is back on a socket of this replica, and goes on with its calls.
    pub(crate) fn resumed(&self, resumed: &Resumed) {
        if self.cluster.is_alone() {
            return;
        }
        if let Err(error) = self.cluster.note(None, note::RESUMED, note::from_resumed(resumed)) {
            tracing::warn!(%error, "other replicas were not told that a daemon is back");
        }
    }

    /// Woken by news of policies: of a peer, or that one is gone, or that Redis is back.
    pub(crate) fn policy_news(&self) -> Arc<Notify> {
        self.policy_news.clone()
    }

    /// Tells the others that there is news of policies in Redis.
    pub(crate) fn tell_policy_news(&self) {
        if let Err(error) = self.cluster.note(None, note::POLICY, rmpv::Value::Nil) {
            // They look once a second.
            tracing::debug!(%error, "other replicas were not told of policies");
        }
    }

    /// This replica changed the experiments.
    pub(crate) fn experiments_changed(&self) {
        if self.cluster.is_alone() {
            return;
        }
        if let Err(error) = self.cluster.note(None, note::EXPERIMENTS, rmpv::Value::Nil) {
            tracing::debug!(%error, "other replicas find out for themselves that experiments were changed");
        }
    }

    /// Another replica may have changed the experiments.
    pub(crate) async fn experiments_news(&self) {
        self.experiments.notified().await;
    }

    /// This replica shuts down: its daemons want no more calls.
    pub(crate) fn leaving(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
        self.say_leaving(None);
    }

    fn say_leaving(&self, peer: Option<&str>) {
        if let Err(error) = self.cluster.note(peer, note::LEAVING, rmpv::Value::Nil) {
            tracing::warn!(%error, "other replicas do not know that this one shuts down");
        }
    }

    /// Whether every peer knows, so that no call is on its way here.
    pub(crate) fn is_leaving_known(&self) -> bool {
        let peers = self.cluster.peers();
        let noted = self.noted.lock();
        peers.iter().all(|peer| noted.contains(peer))
    }

    /// A peer wants no more calls. The book is locked until that is done: the number must still be its own.
    fn drain(&self, peer: &String) {
        let book = self.book.lock();
        if let Some(replica) = book.replica(peer) {
            self.tell(&News::Draining { replica, is_draining: true });
        }
    }

    /// Notes a change to all. The roster is locked until it is handed over: changes leave in the order of their numbers.
    fn announce(&self, change: impl FnOnce(&mut Roster) -> Option<Numbered>) {
        if self.cluster.is_alone() {
            return;
        }
        let mut roster = self.roster.lock();
        if let Some(numbered) = change(&mut roster)
            && let Err(error) = self.cluster.note(None, note::CHANGE, note::from_change(&numbered))
        {
            // The next heartbeat shows the hole.
            tracing::warn!(%error, "other replicas were not told of a change");
        }
    }

    /// Sends a peer all that this replica's sockets have registered. Changes wait meanwhile, so they come behind it.
    fn tell_all(&self, peer: &str) {
        let roster = self.roster.lock();
        for part in roster.snapshot(self.clock.now()).into_parts(PART_BYTES) {
            if let Err(error) = self.cluster.note(Some(peer), note::PART, note::from_part(&part)) {
                tracing::warn!(%error, peer, "a peer was not told this replica's daemons: it will ask again");
                return;
            }
        }
        // One that came too late to hear it.
        if self.is_leaving.load(Ordering::Relaxed) {
            self.say_leaving(Some(peer));
        }
    }

    /// Takes a step of the book and brings what it says to the call machine. The book is locked until that is done, for two
    /// tasks bring it news.
    fn turn(&self, step: impl FnOnce(&mut Book<String>, Time)) {
        let mut book = self.book.lock();
        step(&mut book, self.clock.now());
        while let Some(command) = book.next_command() {
            if let BookCommand::AskSnapshot { peer } = &command {
                if let Err(error) = self.cluster.note(Some(peer), note::ASK, rmpv::Value::Nil) {
                    tracing::debug!(%error, peer, "a peer was not asked");
                }
            } else {
                let owner = |socket| book.owner(socket).cloned();
                self.tell(&News::Daemons { command: &command, owner: &owner });
            }
        }
    }
}

impl Listener for Replicas {
    fn revision(&self) -> u64 {
        self.roster.lock().seq()
    }

    fn peer(&self, event: PeerEvent) {
        if !matches!(event, PeerEvent::Heard { .. }) {
            self.policy_news.notify_one();
        }
        match event {
            PeerEvent::Link { up } => self.tell(&News::Link { up }),
            PeerEvent::Heard { peer, revision } => self.turn(|book, now| book.handle_seen(&peer, revision, now)),
            PeerEvent::Lost { peer, loss } => {
                let cause = match loss {
                    Loss::Killed => Departure::ReplicaLost,
                    Loss::Left => Departure::Drained,
                    Loss::Silent => Departure::ReplicaSilent,
                };
                let replica = self.book.lock().replica(&peer);
                self.turn(|book, now| book.handle_lost(&peer, cause, now));
                if loss != Loss::Silent {
                    // Another replica may get the number next.
                    if let Some(replica) = replica {
                        self.tell(&News::Draining { replica, is_draining: false });
                    }
                    self.tell(&News::ReplicaGone { peer: &peer });
                }
            }
        }
    }

    fn note(&self, peer: &str, number: u32, data: rmpv::Value) {
        let peer = peer.to_owned();
        let understood = match number {
            note::CHANGE => note::to_change(data).map(|change| {
                self.turn(|book, now| book.handle_change(&peer, change, now));
            }),
            note::PART => note::to_part(data).map(|part| {
                self.turn(|book, now| book.handle_snapshot_part(&peer, part, now));
            }),
            note::RESUMED => note::to_resumed(data).map(|resumed| self.tell(&News::Resumed(&resumed))),
            note::ENDED => note::to_ends(data).map(|ends| self.hear_ends(ends)),
            note::ASK => {
                self.tell_all(&peer);
                self.tell_ends(&peer);
                Some(())
            }
            note::LEAVING => {
                self.drain(&peer);
                let noted = self.cluster.note(Some(&peer), note::NOTED, rmpv::Value::Nil);
                if let Err(error) = noted {
                    tracing::debug!(%error, peer, "a peer that is leaving was not answered");
                }
                Some(())
            }
            note::EXPERIMENTS => {
                self.experiments.notify_one();
                Some(())
            }
            note::NOTED => {
                self.noted.lock().insert(peer);
                Some(())
            }
            note::POLICY => {
                self.policy_news.notify_one();
                Some(())
            }
            // Of a later version.
            _ => Some(()),
        };
        if understood.is_none() {
            metrics::counter!("pointwork_notes_malformed_total").increment(1);
        }
    }

    fn missed(&self, broadcasts: Option<u64>) {
        // The adapter has counted and logged it. Clients of this replica have missed them as they miss what comes while
        // they are away.
        metrics::counter!("pointwork_broadcast_gaps_total").increment(1);
        // An emptied stream is that of an emptied Redis.
        if broadcasts.is_none() {
            self.tell(&News::RedisEmptied);
        }
    }
}
