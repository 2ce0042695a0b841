//! A replica with many sockets, and clients of it that follow the stream.

use std::sync::Arc;
use std::time::Duration;

use socketioxide_core::Sid;
use socketioxide_core::adapter::{BroadcastOptions, CoreAdapter, CoreLocalAdapter};
use socketioxide_redis_streams::transport::EntryId;
use socketioxide_redis_streams::transport::memory::Memory;
use socketioxide_redis_streams::{
    Cluster, FOLLOWERS_ROOM, Follower, Following, Gap, Namespace, RedisStreamsAdapter, Settings,
};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::rig::buffered_sockets::{BufferedSockets, Delivery};
use crate::rig::faulty_transport::FaultyTransport;
use crate::rig::replicas::{everyone, packet};

/// Longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct FollowedReplica {
    pub(crate) cluster: Cluster,
    pub(crate) adapter: Arc<RedisStreamsAdapter<BufferedSockets>>,
    pub(crate) namespace: Arc<Namespace>,
    /// `None` if the replica shares no cluster.
    pub(crate) line: Option<FaultyTransport>,
    sockets: BufferedSockets,
}

pub(crate) struct Client {
    pub(crate) sid: Sid,
    got: mpsc::UnboundedReceiver<Delivery>,
    told: mpsc::UnboundedSender<Delivery>,
    following: Option<Following>,
    sockets: BufferedSockets,
    local: Arc<RedisStreamsAdapter<BufferedSockets>>,
}

struct Witness(mpsc::UnboundedSender<Delivery>);

impl Follower for Witness {
    fn began(&self, at: EntryId) {
        let _ = self.0.send(Delivery::Began(at));
    }

    fn recovered(&self, from: EntryId, to: EntryId) {
        let _ = self.0.send(Delivery::Recovered(from, to));
    }

    fn gap(&self, gap: Gap, to: Option<EntryId>) {
        let _ = self.0.send(Delivery::Gap(gap, to));
    }

    fn overrun(&self) {
        let _ = self.0.send(Delivery::Overrun);
    }
}

impl FollowedReplica {
    pub(crate) fn start(redis: &Memory, settings: Settings) -> Self {
        let line = FaultyTransport::new(redis);
        FollowedReplica::of(Cluster::new(Arc::new(line.clone()), settings), Some(line))
    }

    pub(crate) fn alone(settings: Settings) -> Self {
        FollowedReplica::of(Cluster::alone_with(settings), None)
    }

    fn of(cluster: Cluster, line: Option<FaultyTransport>) -> Self {
        let replica = FollowedReplica::at("/", cluster, line);
        replica.cluster.start();
        replica
    }

    /// Another namespace of the same replica.
    pub(crate) fn open(&self, path: &'static str) -> Self {
        FollowedReplica::at(path, self.cluster.clone(), self.line.clone())
    }

    fn at(path: &'static str, cluster: Cluster, line: Option<FaultyTransport>) -> Self {
        let sockets = BufferedSockets::new(path);
        let adapter = Arc::new(RedisStreamsAdapter::new(&cluster, CoreLocalAdapter::new(sockets.clone())));
        adapter.clone().init(|| ());
        let namespace = cluster.namespace(path);
        FollowedReplica { cluster, adapter, namespace, line, sockets }
    }

    /// Starts it and waits until it reads the stream.
    pub(crate) async fn reading(redis: &Memory, settings: Settings) -> Self {
        let replica = FollowedReplica::start(redis, settings);
        let mut client = replica.client(&[]);
        client.follow(&replica, &[], None);
        assert!(matches!(client.got().await, Delivery::Began(_)));
        replica
    }

    /// A socket in these rooms that does not follow.
    pub(crate) fn bare(&self, rooms: &[&'static str]) -> Client {
        let (told, got) = mpsc::unbounded_channel();
        let sid = Sid::new();
        // As with socketioxide, it is in its first rooms before anything reaches it.
        self.adapter.get_local().add_all(sid, rooms.iter().map(ToString::to_string).collect::<Vec<_>>());
        self.sockets.add(sid, told.clone());
        Client { sid, got, told, following: None, sockets: self.sockets.clone(), local: self.adapter.clone() }
    }

    /// A socket in these rooms that will follow.
    pub(crate) fn client(&self, rooms: &[&'static str]) -> Client {
        self.bare(&[&[FOLLOWERS_ROOM], rooms].concat())
    }

    /// A socket that follows from the end of the stream.
    pub(crate) async fn fresh(&self, rooms: &[&'static str]) -> (Client, EntryId) {
        let mut client = self.client(rooms);
        client.follow(self, rooms, None);
        match client.got().await {
            Delivery::Began(at) => (client, at),
            other => panic!("{other:?}"),
        }
    }

    /// A socket that comes back.
    pub(crate) fn back(&self, rooms: &[&'static str], from: EntryId) -> Client {
        let mut client = self.client(rooms);
        client.follow(self, rooms, Some(from));
        client
    }

    /// Broadcasts a number to everyone.
    pub(crate) async fn broadcast(&self, number: u64) {
        self.adapter.broadcast(packet("e", &[number.into()]), everyone()).await.unwrap();
    }

    /// Broadcasts a number to a room.
    pub(crate) async fn to(&self, room: &'static str, number: u64) {
        self.adapter.broadcast(packet("e", &[number.into()]), self::room(room)).await.unwrap();
    }
}

impl Client {
    pub(crate) fn follow(&mut self, replica: &FollowedReplica, rooms: &[&str], from: Option<EntryId>) {
        let rooms = rooms.iter().map(ToString::to_string).collect();
        let witness = Arc::new(Witness(self.told.clone()));
        self.following = Some(replica.namespace.follow(self.sid, rooms, from, witness));
    }

    /// Stops to follow. The socket stays connected.
    pub(crate) fn unfollow(&mut self) {
        self.following = None;
    }

    /// Sets for how many more packets its buffer has room.
    pub(crate) fn set_room(&self, packets: usize) {
        self.sockets.set_room(self.sid, packets);
    }

    pub(crate) async fn got(&mut self) -> Delivery {
        timeout(PATIENCE, self.got.recv()).await.expect("something").unwrap()
    }

    /// The next, which is an event with an offset.
    pub(crate) async fn event(&mut self) -> (u64, EntryId) {
        match self.got().await {
            Delivery::Event(number, Some(at)) => (number, at),
            other => panic!("{other:?}"),
        }
    }

    /// Asserts that these events come next, with growing offsets. Returns the last offset.
    pub(crate) async fn events(&mut self, numbers: impl IntoIterator<Item = u64>) -> EntryId {
        let mut last = EntryId::default();
        for expected in numbers {
            let (number, at) = self.event().await;
            assert_eq!(number, expected);
            assert!(at > last, "{at} after {last}");
            last = at;
        }
        last
    }

    /// Asserts that it gets nothing more within a second.
    pub(crate) async fn got_nothing(&mut self) {
        let more = timeout(Duration::from_secs(1), self.got.recv()).await;
        assert!(more.is_err(), "{more:?}");
    }

    /// What it got and the test has not read yet.
    pub(crate) fn rest(&mut self) -> Vec<Delivery> {
        std::iter::from_fn(|| self.got.try_recv().ok()).collect()
    }
}

/// It disconnects.
impl Drop for Client {
    fn drop(&mut self) {
        self.following = None;
        self.sockets.remove(self.sid);
        self.local.get_local().del_all(self.sid);
    }
}

pub(crate) fn room(name: &'static str) -> BroadcastOptions {
    let mut selected = BroadcastOptions::default();
    selected.rooms.push(name.into());
    selected
}
