//! Replicas on one Redis in memory, each with one socket.

use std::sync::Arc;
use std::time::Duration;

use socketioxide_core::adapter::{BroadcastFlags, BroadcastOptions, CoreAdapter, CoreLocalAdapter};
use socketioxide_core::packet::Packet;
use socketioxide_core::parser::Parse;
use socketioxide_parser_common::CommonParser;
use socketioxide_redis_streams::transport::memory::Memory;
use socketioxide_redis_streams::wire::Value;
use socketioxide_redis_streams::{
    Args, Cluster, Listener, Namespace, PeerEvent, RedisStreamsAdapter, Settings, SocketRequest,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::rig::faulty_transport::FaultyTransport;
use crate::rig::recording_socket::Sockets;

/// Longer than any test takes. The time is simulated, so waiting costs nothing.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Replica {
    pub(crate) cluster: Cluster,
    pub(crate) adapter: Arc<RedisStreamsAdapter<Sockets>>,
    pub(crate) namespace: Arc<Namespace>,
    pub(crate) sockets: Sockets,
    pub(crate) line: FaultyTransport,
    inbox: mpsc::UnboundedReceiver<String>,
    told: mpsc::UnboundedReceiver<(ListenerEvent, Instant)>,
}

/// A call of a replica's listener.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ListenerEvent {
    Peer(PeerEvent),
    Note { peer: String, number: u32, data: Value },
    Missed(Option<u64>),
}

struct Log(mpsc::UnboundedSender<(ListenerEvent, Instant)>);

impl Log {
    fn write(&self, told: ListenerEvent) {
        let _ = self.0.send((told, Instant::now()));
    }
}

impl Listener for Log {
    fn revision(&self) -> u64 {
        7
    }

    fn peer(&self, event: PeerEvent) {
        self.write(ListenerEvent::Peer(event));
    }

    fn note(&self, peer: &str, number: u32, data: Value) {
        self.write(ListenerEvent::Note { peer: peer.to_owned(), number, data });
    }

    fn missed(&self, broadcasts: Option<u64>) {
        self.write(ListenerEvent::Missed(broadcasts));
    }
}

/// Starts so many replicas.
pub(crate) fn start(redis: &Memory, count: usize, settings: &Settings) -> Vec<Replica> {
    (0..count).map(|_| Replica::start(redis, settings.clone())).collect()
}

/// Starts so many replicas and waits until each knows all others.
pub(crate) async fn start_known(redis: &Memory, count: usize, settings: &Settings) -> Vec<Replica> {
    let mut replicas = start(redis, count, settings);
    for replica in &mut replicas {
        replica.knows(count - 1).await;
    }
    replicas
}

impl Replica {
    pub(crate) fn start(redis: &Memory, settings: Settings) -> Self {
        let line = FaultyTransport::new(redis);
        let cluster = Cluster::new(Arc::new(line.clone()), settings);
        let (sockets, inbox) = Sockets::new("/");
        let (log, told) = mpsc::unbounded_channel();
        cluster.listen(Arc::new(Log(log)));
        let adapter = Arc::new(RedisStreamsAdapter::new(&cluster, CoreLocalAdapter::new(sockets.clone())));
        adapter.clone().init(|| ());
        cluster.start();
        let namespace = cluster.namespace("/");
        Replica { cluster, adapter, namespace, sockets, line, inbox, told }
    }

    /// Waits until the replica is linked and knows so many others.
    pub(crate) async fn knows(&mut self, others: usize) {
        let known = |cluster: &Cluster| {
            let standing = cluster.standing();
            standing.linked && standing.complete && standing.peers == others
        };
        let deadline = Instant::now() + PATIENCE;
        while !known(&self.cluster) {
            assert!(Instant::now() < deadline, "{:?} of {others}", self.cluster.standing());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        while self.told.try_recv().is_ok() {}
    }

    /// Broadcasts an event with a number to everyone.
    pub(crate) async fn broadcast(&self, event: &str, number: u64) {
        self.adapter.broadcast(packet(event, &[number.into()]), everyone()).await.unwrap();
    }

    /// The next packet that its socket gets.
    pub(crate) async fn got(&mut self) -> String {
        timeout(PATIENCE, self.inbox.recv()).await.expect("a packet").unwrap()
    }

    /// Asserts that its socket gets nothing more within a second.
    pub(crate) async fn got_nothing(&mut self) {
        let more = timeout(Duration::from_secs(1), self.inbox.recv()).await;
        assert!(more.is_err(), "{more:?}");
    }

    /// The next call of the listener that is no heartbeat, and its time.
    pub(crate) async fn told(&mut self) -> (ListenerEvent, Instant) {
        loop {
            let told = timeout(PATIENCE, self.told.recv()).await.expect("something told").unwrap();
            if !matches!(told.0, ListenerEvent::Peer(PeerEvent::Heard { .. })) {
                return told;
            }
        }
    }

    /// Asserts that the listener is called only for heartbeats for so long.
    pub(crate) async fn told_nothing(&mut self, within: Duration) {
        let more = timeout(within, self.told()).await;
        assert!(more.is_err(), "{more:?}");
    }

    /// Waits for a peer's heartbeat.
    pub(crate) async fn heard(&mut self, uid: &str) -> Instant {
        loop {
            let (told, when) = timeout(PATIENCE, self.told.recv()).await.expect("a heartbeat").unwrap();
            if told == ListenerEvent::Peer(PeerEvent::Heard { peer: uid.to_owned(), revision: 7 }) {
                return when;
            }
        }
    }

    /// A request to another replica's socket.
    pub(crate) fn ask(&self, other: &Replica, event: &str, within: Duration) -> SocketRequest {
        let packet = socketioxide_redis_streams::wire::Packet::event(event, ["x".into()]);
        self.namespace.request(other.cluster.uid(), other.sockets.sid.as_str(), packet, within).unwrap()
    }

    /// Its private channel.
    pub(crate) fn channel(&self) -> String {
        format!("socket.io#/#{}#", self.cluster.uid())
    }

    /// What its socket acknowledges with.
    pub(crate) fn ack(&self) -> Value {
        self.sockets.sid.as_str().into()
    }
}

pub(crate) fn everyone() -> BroadcastOptions {
    let mut selected = BroadcastOptions::default();
    selected.add_flag(BroadcastFlags::Broadcast);
    selected
}

pub(crate) fn packet(event: &str, args: &[Value]) -> Packet {
    Packet::event("/", CommonParser.encode_value(&Args(args.to_vec()), Some(event)).unwrap())
}
