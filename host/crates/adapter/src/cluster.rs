//! A replica's part in a cluster: who it is, what it shares with all its namespaces, and the tasks that keep it there.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use rmpv::Value;
use tokio::sync::watch;
use tokio::time::{Duration, Instant};

use crate::error::ClusterError;
use crate::listener::Listener;
use crate::lock::{lock, read, write};
use crate::namespace::Namespace;
use crate::outbox::{Letter, Outbox};
use crate::peers::{PeerEvent, Peers, Timing};
use crate::recall::Served;
use crate::replay::Unsent;
use crate::requests::Requests;
use crate::settings::Settings;
use crate::tail::Tail;
use crate::transport::{Outgoing, Transport};
use crate::wire::{Body, Channels, Message, Other, pubsub, stream::Entry};
use crate::{beat, reader, subscriber, writer};

/// What replicas of this kind say to each other goes by channels of its own, which read like those of a namespace that no
/// client can name.
pub(crate) const PEERS_NSP: &str = "peers";
/// On the stream: broadcasts of the sender before this never got there. Servers of another kind pass over it.
pub(crate) const LOSS: u32 = 106;
/// The first type number of an application's notes; those from 100 up to it are this crate's own.
pub const NOTE_MIN: u32 = 110;

/// A replica's part in a cluster. Cheap to clone; the adapter of each namespace holds one.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

/// How a replica stands in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Redis can be reached, messages come back from it, and every channel is subscribed to.
    pub linked: bool,
    /// Every replica of this kind was heard from, or has had its time.
    pub complete: bool,
    /// Other replicas of this kind, as they were heard.
    pub peers: usize,
    /// Servers of another kind in the root namespace: Node's.
    pub foreign: u64,
}

pub(crate) struct Inner {
    pub(crate) uid: String,
    pub(crate) settings: Settings,
    /// Nothing when the replica is alone.
    shared: Option<Shared>,
    /// What the stream brought last, and who follows it.
    pub(crate) tail: Tail,
    namespaces: RwLock<HashMap<String, Arc<Namespace>>>,
    listener: OnceLock<Arc<dyn Listener>>,
}

/// What a replica that is not alone has.
pub(crate) struct Shared {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) outbox: Outbox,
    pub(crate) requests: Requests,
    pub(crate) channels: Channels,
    pub(crate) stop: watch::Sender<bool>,
    peers: Mutex<Peers>,
    foreign: AtomicU64,
    /// Channels that are being subscribed to: until they are, others may speak to this replica in vain.
    pub(crate) attaching: AtomicU64,
    /// The requests of others that are being served here.
    pub(crate) served: Served,
    /// How often the subscription was interrupted: others are told, for what they sent meanwhile is lost.
    pub(crate) interruptions: AtomicU64,
    /// What this replica broadcast may not have got into the stream: clients of all replicas are to be told.
    pub(crate) is_loss_due: AtomicBool,
    /// What this replica told by PUB/SUB may be lost: its own requests are to be asked about.
    pub(crate) is_recall_due: AtomicBool,
    started: Instant,
}

impl Cluster {
    /// A replica without others: everything is delivered here, and nowhere else.
    #[must_use]
    pub fn alone() -> Self {
        Self::build(None, Settings::default())
    }

    /// A replica that shares a cluster by way of `transport`. Nothing is sent or received before [`Cluster::start`].
    #[must_use]
    pub fn new(transport: Arc<dyn Transport>, settings: Settings) -> Self {
        Self::build(Some(transport), settings)
    }

    /// A replica without others, of which some of the settings count: how much is kept for sockets that follow.
    #[must_use]
    pub fn alone_with(settings: Settings) -> Self {
        Self::build(None, settings)
    }

    fn build(transport: Option<Arc<dyn Transport>>, settings: Settings) -> Self {
        let uid = format!("{:016x}", fastrand::u64(..));
        let timing = Timing {
            lost_after: settings.lost_after,
            link_lost_after: settings.link_lost_after(),
            gone_after: settings.gone_after(),
        };
        let shared = transport.map(|transport| Shared {
            transport,
            outbox: Outbox::new(settings.outbox_messages_max, settings.outbox_bytes_max),
            requests: Requests::new(settings.requests_max),
            channels: Channels::new(&settings.channel_prefix, PEERS_NSP, &uid),
            stop: watch::Sender::new(false),
            peers: Mutex::new(Peers::new(timing)),
            foreign: AtomicU64::new(0),
            attaching: AtomicU64::new(0),
            served: Served::default(),
            interruptions: AtomicU64::new(0),
            is_loss_due: AtomicBool::new(false),
            is_recall_due: AtomicBool::new(false),
            started: Instant::now(),
        });
        let (namespaces, listener) = (RwLock::default(), OnceLock::new());
        let tail = Tail::new(&settings, shared.is_none());
        Cluster(Arc::new(Inner { uid, settings, shared, tail, namespaces, listener }))
    }

    /// Who is told of peers and notes. Only the first one counts, and it is to be given before [`Cluster::start`].
    pub fn listen(&self, listener: Arc<dyn Listener>) {
        let _ = self.0.listener.set(listener);
    }

    /// Starts the tasks, which run on the current runtime until [`Cluster::close`].
    pub fn start(&self) {
        if self.0.shared.is_some() {
            tokio::spawn(writer::run(self.0.clone()));
            tokio::spawn(subscriber::run(self.0.clone()));
            tokio::spawn(reader::run(self.0.clone()));
            tokio::spawn(beat::probe(self.0.clone()));
        }
    }

    /// Says goodbye to the peers, sends what waits to be sent, and ends the tasks.
    pub async fn close(&self) {
        let Some(shared) = &self.0.shared else { return };
        if shared.stop.send_replace(true) {
            return;
        }
        let _ = self.0.tell_peers(None, beat::FAREWELL, Value::Nil);
        shared.outbox.close();
        // The writer holds a receiver until all is sent.
        let sent = tokio::time::timeout(Duration::from_secs(2), writer::finished(shared));
        if sent.await.is_err() {
            tracing::warn!("the last messages did not get to Redis");
        }
        shared.transport.close().await;
    }

    /// The replica's id on the wire, sixteen hex digits, new at every start.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.0.uid
    }

    /// Whether there is nobody to share anything with.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.0.shared.is_none()
    }

    /// How the replica stands at this moment. One that is alone is linked and complete.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let Some(shared) = &self.0.shared else {
            return Standing { linked: true, complete: true, ..Standing::default() };
        };
        let peers = lock(&shared.peers);
        Standing {
            linked: peers.is_linked() && shared.attaching.load(Ordering::Relaxed) == 0,
            complete: peers.is_complete(shared.started.elapsed()),
            peers: peers.uids().count(),
            foreign: shared.foreign(),
        }
    }

    /// The uids of the other replicas of this kind that are heard from.
    #[must_use]
    pub fn peers(&self) -> Vec<String> {
        self.0.step(|peers, _| peers.present().cloned().collect()).unwrap_or_default()
    }

    /// Whether another replica of this kind is there as far as is known, be it silent.
    #[must_use]
    pub fn knows(&self, peer: &str) -> bool {
        self.0.step(|peers, _| peers.knows(peer)).unwrap_or(false)
    }

    /// The rooms that those requests of other servers are for which wait for acknowledgements. What is for one socket alone is for the
    /// room of its id.
    #[must_use]
    pub fn served_rooms(&self) -> HashSet<String> {
        self.0.shared().map(|shared| shared.served.rooms()).unwrap_or_default()
    }

    /// How many requests of other servers wait for the acknowledgements of sockets of this one.
    #[must_use]
    pub fn serving(&self) -> usize {
        self.0.shared().map_or(0, |shared| shared.served.count())
    }

    /// How many such requests there were since this one started.
    #[must_use]
    pub fn served(&self) -> u64 {
        self.0.shared().map_or(0, |shared| shared.served.begun())
    }

    /// What this replica shares of a namespace.
    #[must_use]
    pub fn namespace(&self, path: &str) -> Arc<Namespace> {
        let mut namespaces = write(&self.0.namespaces);
        let number = namespaces.len() as u64;
        let made = || Arc::new(Namespace::new(path, number, &self.0));
        namespaces.entry(path.to_owned()).or_insert_with(made).clone()
    }

    /// Tells all peers (`None`) or one something of the application's own, which their [`Listener`] gets in the order told. Node's
    /// servers do not get it. It is lost with a link that is down.
    ///
    /// # Errors
    /// When it cannot be taken.
    ///
    /// # Panics
    /// In debug builds, when `number` is below [`NOTE_MIN`].
    pub fn note(&self, peer: Option<&str>, number: u32, data: Value) -> Result<(), ClusterError> {
        debug_assert!(number >= NOTE_MIN, "the numbers below are taken");
        self.0.tell_peers(peer, number, data)
    }
}

impl Inner {
    /// What it shares with others, if there are others.
    pub(crate) fn shared(&self) -> Option<&Shared> {
        self.shared.as_ref()
    }

    pub(crate) fn find(&self, path: &str) -> Option<Arc<Namespace>> {
        read(&self.namespaces).get(path).cloned()
    }

    pub(crate) fn listener(&self) -> Option<&Arc<dyn Listener>> {
        self.listener.get()
    }

    pub(crate) fn tell_peers(&self, peer: Option<&str>, number: u32, data: Value) -> Result<(), ClusterError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let channel = match peer {
            Some(peer) => Channels::private_of(&self.settings.channel_prefix, PEERS_NSP, peer),
            None => shared.channels.public.clone(),
        };
        self.publish(channel, PEERS_NSP, Body::Other(Other { number, data }), None)
    }

    /// Publishes a message; `request` fails if it turns out that it could not be sent.
    pub(crate) fn publish(
        &self,
        channel: String,
        nsp: &str,
        body: Body,
        request: Option<String>,
    ) -> Result<(), ClusterError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let payload = pubsub::encode(&self.message(nsp, body), &self.settings.limits)?;
        let outgoing = Outgoing::Publish { channel: channel.into(), payload: payload.into() };
        Ok(shared.outbox.push(Letter { outgoing, request, unsent: None })?)
    }

    /// Appends a message to the stream. `unsent` is what followers here get if it turns out that it did not get there.
    pub(crate) fn append(&self, nsp: &str, body: Body, unsent: Option<Box<Unsent>>) -> Result<(), ClusterError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let appended = self.try_append(shared, nsp, body, unsent);
        if appended.is_err() {
            shared.is_loss_due.store(true, Ordering::Relaxed);
        }
        appended
    }

    fn try_append(
        &self,
        shared: &Shared,
        nsp: &str,
        body: Body,
        unsent: Option<Box<Unsent>>,
    ) -> Result<(), ClusterError> {
        let entry = Entry::encode(&self.message(nsp, body), &self.settings.limits)?;
        let outgoing = Outgoing::Append {
            stream: self.settings.stream_name.as_str().into(),
            fields: entry.fields().map(|(name, value)| (name, value.into_owned())).collect(),
            len_max: self.settings.stream_len_max,
        };
        Ok(shared.outbox.push(Letter { outgoing, request: None, unsent })?)
    }

    /// Says in the stream that broadcasts of this replica did not get there, once it can be said.
    pub(crate) fn tell_loss(&self, shared: &Shared) {
        if shared.is_loss_due.swap(false, Ordering::Relaxed) {
            let told = self.append(PEERS_NSP, Body::Other(Other { number: LOSS, data: Value::Nil }), None);
            if let Err(error) = told {
                tracing::debug!(%error, "that broadcasts are lost could not be told yet");
            }
        }
    }

    fn message(&self, nsp: &str, body: Body) -> Message {
        Message { uid: self.uid.clone(), nsp: nsp.to_owned(), body }
    }

    /// Takes a step of the machine of peers and tells the listener what came of it, in order.
    pub(crate) fn step<T>(&self, step: impl FnOnce(&mut Peers, Duration) -> T) -> Option<T> {
        let shared = self.shared.as_ref()?;
        // Held while the listener is told, so that two tasks cannot tell it in the wrong order.
        let mut peers = lock(&shared.peers);
        let result = step(&mut peers, shared.started.elapsed());
        while let Some(event) = peers.next_event() {
            note_down(&event);
            if let Some(listener) = self.listener.get() {
                listener.peer(event);
            }
        }
        Some(result)
    }
}

impl Shared {
    /// Whether a server has said that it opens parcels.
    pub(crate) fn opens_parcels(&self, server: &str) -> bool {
        lock(&self.peers).opens_parcels(server)
    }

    /// Something that was told by PUB/SUB is lost: whoever waits for it asks when it sees the next heartbeat, and this replica asks
    /// too, for what was lost may have been a question.
    pub(crate) fn note_lost(&self) {
        self.interruptions.fetch_add(1, Ordering::Relaxed);
        self.is_recall_due.store(true, Ordering::Relaxed);
    }

    pub(crate) fn foreign(&self) -> u64 {
        self.foreign.load(Ordering::Relaxed)
    }

    pub(crate) fn set_foreign(&self, servers: u64) {
        self.foreign.store(servers, Ordering::Relaxed);
        #[expect(clippy::cast_precision_loss, reason = "a gauge")]
        metrics::gauge!("adapter_foreign_servers").set(servers as f64);
    }
}

fn note_down(event: &PeerEvent) {
    match event {
        PeerEvent::Heard { .. } => {}
        PeerEvent::Link { up: true } => tracing::info!("linked to the cluster"),
        PeerEvent::Link { up: false } => {
            metrics::counter!("adapter_link_lost_total").increment(1);
            tracing::warn!("the link to the cluster is down: other replicas cannot be reached");
        }
        PeerEvent::Lost { peer, loss } => {
            metrics::counter!("adapter_peers_lost_total", "loss" => loss.name()).increment(1);
            tracing::info!(peer, loss = loss.name(), "a peer was lost");
        }
    }
}
