//! The server's state, and what its connections do to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::ConnectionId;
use super::inbox::Inbox;
use super::stream::Stream;
use crate::lock::lock;
use crate::transport::{Outgoing, Received, TransportError};

/// When the first server was made, in milliseconds since 1970: the ids of entries look like real ones.
const EPOCH_MS: u64 = 1_700_000_000_000;
/// How many requests a hung server holds. More are not taken.
const HELD_MAX: usize = 4096;

pub(super) struct Server {
    state: Mutex<State>,
    /// Told when a wait may be over.
    changes: watch::Sender<()>,
}

impl Default for Server {
    fn default() -> Self {
        Server { state: Mutex::new(State::new(Instant::now())), changes: watch::Sender::new(()) }
    }
}

impl Server {
    pub(super) fn look<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut lock(&self.state))
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = self.look(change);
        self.changes.send_replace(());
        result
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }
}

pub(super) struct State {
    pub(super) is_hung: bool,
    pub(super) streams: BTreeMap<String, Stream>,
    pub(super) delivered: BTreeMap<String, u64>,
    is_running: bool,
    made: Instant,
    peers: BTreeMap<ConnectionId, Peer>,
    peers_ever: u64,
    /// What was sent while it hangs.
    held: Vec<Request>,
}

/// What a connection asks for, and what takes effect even if its answer is not awaited.
pub(super) enum Request {
    Send(Vec<Outgoing>),
    Subscribe(ConnectionId, Vec<String>),
    Unsubscribe(ConnectionId, Vec<String>),
}

/// The server's side of a connection, and its inbox.
#[derive(Default)]
struct Peer {
    inbox: Inbox,
    is_news: Arc<Notify>,
    is_cut: bool,
    /// What it wants, for good.
    wanted: BTreeSet<String>,
    /// What it is subscribed to on this connection.
    subscribed: BTreeSet<String>,
}

impl State {
    fn new(made: Instant) -> State {
        State {
            is_hung: false,
            streams: BTreeMap::new(),
            delivered: BTreeMap::new(),
            is_running: true,
            made,
            peers: BTreeMap::new(),
            peers_ever: 0,
            held: Vec::new(),
        }
    }

    pub(super) fn connect(&mut self) -> (ConnectionId, Arc<Notify>) {
        let id = ConnectionId(self.peers_ever);
        self.peers_ever += 1;
        let mut peer = Peer::default();
        if self.is_running {
            peer.up();
        }
        let is_news = peer.is_news.clone();
        self.peers.insert(id, peer);
        (id, is_news)
    }

    pub(super) fn close(&mut self, id: ConnectionId) {
        if let Some(peer) = self.peers.remove(&id) {
            peer.is_news.notify_one();
        }
    }

    /// Whether a connection is there.
    pub(super) fn check(&self, id: ConnectionId) -> Result<(), TransportError> {
        match self.peers.get(&id) {
            None => Err(TransportError::Closed),
            Some(peer) if peer.is_cut => Err(TransportError::Disconnected("it is cut".to_owned())),
            Some(_) if !self.is_running => Err(TransportError::Disconnected("the server is stopped".to_owned())),
            Some(_) => Ok(()),
        }
    }

    pub(super) fn set_cut(&mut self, id: ConnectionId, is_cut: bool) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if std::mem::replace(&mut peer.is_cut, is_cut) != is_cut && self.is_running {
            if is_cut { peer.down() } else { peer.up() }
        }
    }

    pub(super) fn stop(&mut self) {
        self.held.clear();
        if std::mem::replace(&mut self.is_running, false) {
            self.peers.values_mut().filter(|peer| !peer.is_cut).for_each(Peer::down);
        }
    }

    pub(super) fn start(&mut self, empty: bool) {
        if std::mem::replace(&mut self.is_running, true) {
            return;
        }
        self.is_hung = false;
        if empty {
            self.streams.clear();
        }
        self.peers.values_mut().filter(|peer| !peer.is_cut).for_each(Peer::up);
    }

    pub(super) fn resume(&mut self) {
        self.is_hung = false;
        for request in std::mem::take(&mut self.held) {
            self.carry_out(request);
        }
    }

    pub(super) fn lag(&mut self, id: ConnectionId, messages: u64) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.inbox.lag(messages);
        }
    }

    /// Carries a request out, or holds it while the server hangs.
    pub(super) fn take(&mut self, request: Request) -> Result<(), TransportError> {
        if !self.is_hung {
            self.carry_out(request);
        } else if self.held.len() < HELD_MAX {
            self.held.push(request);
        } else {
            return Err(TransportError::Timeout);
        }
        Ok(())
    }

    /// Wanted for good, whether or not the connection is there.
    pub(super) fn want(&mut self, id: ConnectionId, channels: &[String], is_wanted: bool) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        match is_wanted {
            true => peer.wanted.extend(channels.iter().cloned()),
            false => peer.wanted.retain(|channel| !channels.contains(channel)),
        }
    }

    pub(super) fn subscribers(&self, channel: &str) -> u64 {
        self.peers.values().filter(|peer| peer.subscribed.contains(channel)).count() as u64
    }

    /// The next thing that a connection receives; an error if it is closed.
    pub(super) fn receive(&mut self, id: ConnectionId) -> Result<Option<Received>, TransportError> {
        self.peers.get_mut(&id).map(|peer| peer.inbox.next()).ok_or(TransportError::Closed)
    }

    fn carry_out(&mut self, request: Request) {
        match request {
            Request::Send(batch) => batch.into_iter().for_each(|outgoing| self.send(outgoing)),
            Request::Subscribe(id, channels) => {
                // Held while it was up, and cut since.
                if let Some(peer) = self.peers.get_mut(&id).filter(|peer| !peer.is_cut) {
                    peer.subscribed.extend(channels);
                }
            }
            Request::Unsubscribe(id, channels) => {
                if let Some(peer) = self.peers.get_mut(&id) {
                    peer.subscribed.retain(|channel| !channels.contains(channel));
                }
            }
        }
    }

    fn send(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Append { stream, fields, len_max } => {
                let since = u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX);
                let now_ms = EPOCH_MS.saturating_add(since);
                self.streams.entry(stream.to_string()).or_default().append(now_ms, fields, len_max);
            }
            Outgoing::Publish { channel, payload } => {
                for peer in self.peers.values_mut().filter(|peer| peer.subscribed.contains(&*channel)) {
                    peer.inbox.message(channel.to_string(), payload.clone());
                    peer.is_news.notify_one();
                    *self.delivered.entry(channel.to_string()).or_default() += 1;
                }
            }
        }
    }
}

impl Peer {
    fn up(&mut self) {
        self.subscribed.clone_from(&self.wanted);
        self.inbox.restored();
        self.is_news.notify_one();
    }

    fn down(&mut self) {
        self.subscribed.clear();
        self.inbox.interrupted();
        self.is_news.notify_one();
    }
}
