//! The parts of a replica, and how they are connected.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::{Duration, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::broadcasts::{FollowedStream, StreamReader, StreamSource};
use crate::membership::PeerTracker;
use crate::outbox::{Publisher, Writer};
use crate::requests::{LostRequests, OpenRequests, RequestServer, ServedRequests};
use crate::settings::Settings;
use crate::sockets::LocalNamespaces;
use crate::transport::Transport;

/// The pauses between two attempts to subscribe.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// A replica.
pub(super) struct Replica {
    pub(super) uid: String,
    pub(super) settings: Arc<Settings>,
    pub(super) namespaces: Arc<LocalNamespaces>,
    pub(super) followed: Arc<FollowedStream>,
    /// `None` if the replica shares no cluster.
    pub(super) link: Option<Arc<ClusterLink>>,
}

/// What connects a replica to the other servers of its cluster.
pub(super) struct ClusterLink {
    pub(super) publisher: Arc<Publisher>,
    pub(super) source: Arc<StreamSource>,
    pub(super) peers: Arc<PeerTracker>,
    /// The requests of this replica that wait for answers.
    pub(super) requests: OpenRequests,
    pub(super) lost_requests: LostRequests,
    pub(super) server: Arc<RequestServer>,
    /// Ends the tasks.
    pub(super) stop: CancellationToken,
    /// The task that empties the outbox.
    pub(super) writers: TaskTracker,
    /// How many subscriptions are under way. Until they are done, messages to this replica may be lost.
    subscribing: AtomicUsize,
}

impl ClusterLink {
    pub(super) fn new(
        uid: &str,
        settings: &Arc<Settings>,
        transport: Arc<dyn Transport>,
        namespaces: &Arc<LocalNamespaces>,
        followed: &Arc<FollowedStream>,
    ) -> Self {
        let publisher = Arc::new(Publisher::new(uid, settings.clone()));
        let (requests, served) = (OpenRequests::new(settings.requests_max), Arc::new(ServedRequests::default()));
        let source = StreamSource {
            uid: uid.to_owned(),
            settings: settings.clone(),
            transport,
            namespaces: namespaces.clone(),
            followed: followed.clone(),
        };
        ClusterLink {
            source: Arc::new(source),
            peers: Arc::new(PeerTracker::new(settings)),
            lost_requests: LostRequests {
                publisher: publisher.clone(),
                open: requests.clone(),
                served: served.clone(),
            },
            server: Arc::new(RequestServer { publisher: publisher.clone(), served }),
            requests,
            publisher,
            stop: CancellationToken::new(),
            writers: TaskTracker::new(),
            subscribing: AtomicUsize::new(0),
        }
    }

    pub(super) fn transport(&self) -> &dyn Transport {
        &*self.source.transport
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.source.settings
    }

    /// The task that sends what is in the outbox.
    pub(super) fn writer(&self) -> Writer {
        let (peers, requests) = (self.peers.clone(), self.requests.clone());
        Writer {
            transport: self.source.transport.clone(),
            publisher: self.publisher.clone(),
            unpacks_batches: Box::new(move |server| peers.read(|peers, _| peers.unpacks_batches(server))),
            on_lost_request: Box::new(move |request| requests.fail(request)),
        }
    }

    /// The task that reads the stream.
    pub(super) fn stream_reader(&self) -> StreamReader {
        let (server, peers) = (self.server.clone(), self.peers.clone());
        let on_missed = move |entries| {
            if let Some(listener) = peers.listener() {
                listener.missed(entries);
            }
        };
        StreamReader::new(
            self.source.clone(),
            move |namespace, message| server.handle_message(namespace, message),
            on_missed,
        )
    }

    /// Messages to this replica may have been lost: asks all peers about the open requests to them.
    pub(super) fn ask_about_lost_requests(&self) {
        self.lost_requests.ask_all(&self.peers.uids());
    }

    /// Whether a subscription is under way.
    pub(super) fn is_subscribing(&self) -> bool {
        self.subscribing.load(Ordering::Relaxed) > 0
    }

    /// Subscribes to channels. Tries again until it succeeds.
    pub(super) async fn subscribe(&self, channels: Vec<String>) {
        self.subscribing.fetch_add(1, Ordering::Relaxed);
        let mut pause = PAUSE_MIN;
        while !self.stop.is_cancelled() {
            match self.transport().subscribe(channels.clone()).await {
                Ok(()) => break,
                Err(error) => tracing::debug!(%error, "not subscribed yet"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        self.subscribing.fetch_sub(1, Ordering::Relaxed);
    }
}
