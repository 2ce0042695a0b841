//! The state of the server, and the requests of its connections.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::inbox::Inbox;
use super::stream::Stream;
use crate::transport::types::{Outgoing, Received, TransportError};

/// When the first server was made, in milliseconds since 1970: the ids of entries look like real ones.
const EPOCH_MS: u64 = 1_700_000_000_000;
/// How many requests a hung server holds. More are not taken.
const HELD_MAX: usize = 4096;

/// Identifies a connection to a [`Memory`](super::Memory).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

pub(super) struct Server {
    state: Mutex<ServerState>,
    /// Changes whenever a wait may be over.
    changes: watch::Sender<()>,
}

impl Default for Server {
    fn default() -> Self {
        Server { state: Mutex::new(ServerState::new(Instant::now())), changes: watch::Sender::new(()) }
    }
}

impl Server {
    pub(super) fn look<T>(&self, look: impl FnOnce(&mut ServerState) -> T) -> T {
        look(&mut self.state.lock())
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut ServerState) -> T) -> T {
        let result = self.look(change);
        self.changes.send_replace(());
        result
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }
}

pub(super) struct ServerState {
    pub(super) is_hung: bool,
    pub(super) streams: BTreeMap<String, Stream>,
    pub(super) delivered: BTreeMap<String, u64>,
    is_running: bool,
    made: Instant,
    clients: BTreeMap<ConnectionId, Client>,
    connections_made: u64,
    /// The requests that were sent while it hangs.
    held: Vec<ServerRequest>,
}

/// A request of a connection. It takes effect even if its answer is not awaited.
pub(super) enum ServerRequest {
    Send(Vec<Outgoing>),
    Subscribe(ConnectionId, Vec<String>),
    Unsubscribe(ConnectionId, Vec<String>),
}

/// The server's side of a connection.
#[derive(Default)]
struct Client {
    inbox: Inbox,
    is_news: Arc<Notify>,
    is_cut: bool,
    /// The channels that it wants on every connection.
    wanted: BTreeSet<String>,
    /// The channels that it is subscribed to now.
    subscribed: BTreeSet<String>,
}

impl ServerState {
    fn new(made: Instant) -> ServerState {
        ServerState {
            is_hung: false,
            streams: BTreeMap::new(),
            delivered: BTreeMap::new(),
            is_running: true,
            made,
            clients: BTreeMap::new(),
            connections_made: 0,
            held: Vec::new(),
        }
    }

    pub(super) fn connect(&mut self) -> (ConnectionId, Arc<Notify>) {
        let id = ConnectionId(self.connections_made);
        self.connections_made += 1;
        let mut client = Client::default();
        if self.is_running {
            client.up();
        }
        let is_news = client.is_news.clone();
        self.clients.insert(id, client);
        (id, is_news)
    }

    pub(super) fn close(&mut self, id: ConnectionId) {
        if let Some(client) = self.clients.remove(&id) {
            client.is_news.notify_one();
        }
    }

    /// Fails if a connection is closed or cut.
    pub(super) fn check(&self, id: ConnectionId) -> Result<(), TransportError> {
        match self.clients.get(&id) {
            None => Err(TransportError::Closed),
            Some(client) if client.is_cut => Err(TransportError::Disconnected("it is cut".to_owned())),
            Some(_) if !self.is_running => Err(TransportError::Disconnected("the server is stopped".to_owned())),
            Some(_) => Ok(()),
        }
    }

    pub(super) fn set_cut(&mut self, id: ConnectionId, is_cut: bool) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if std::mem::replace(&mut client.is_cut, is_cut) != is_cut && self.is_running {
            if is_cut { client.down() } else { client.up() }
        }
    }

    pub(super) fn stop(&mut self) {
        self.held.clear();
        if std::mem::replace(&mut self.is_running, false) {
            self.clients.values_mut().filter(|client| !client.is_cut).for_each(Client::down);
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
        self.clients.values_mut().filter(|client| !client.is_cut).for_each(Client::up);
    }

    pub(super) fn resume(&mut self) {
        self.is_hung = false;
        for request in std::mem::take(&mut self.held) {
            self.carry_out(request);
        }
    }

    pub(super) fn lag(&mut self, id: ConnectionId, messages: u64) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.inbox.lag(messages);
        }
    }

    /// Carries out a request, or holds it while the server hangs.
    pub(super) fn take(&mut self, request: ServerRequest) -> Result<(), TransportError> {
        if !self.is_hung {
            self.carry_out(request);
        } else if self.held.len() < HELD_MAX {
            self.held.push(request);
        } else {
            return Err(TransportError::Timeout);
        }
        Ok(())
    }

    /// Sets which channels a connection wants, whether or not it is up.
    pub(super) fn want(&mut self, id: ConnectionId, channels: &[String], is_wanted: bool) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        match is_wanted {
            true => client.wanted.extend(channels.iter().cloned()),
            false => client.wanted.retain(|channel| !channels.contains(channel)),
        }
    }

    pub(super) fn subscribers(&self, channel: &str) -> u64 {
        self.clients.values().filter(|client| client.subscribed.contains(channel)).count() as u64
    }

    /// The next event of a connection. Fails if it is closed.
    pub(super) fn receive(&mut self, id: ConnectionId) -> Result<Option<Received>, TransportError> {
        self.clients.get_mut(&id).map(|client| client.inbox.next()).ok_or(TransportError::Closed)
    }

    fn carry_out(&mut self, request: ServerRequest) {
        match request {
            ServerRequest::Send(batch) => batch.into_iter().for_each(|outgoing| self.send(outgoing)),
            ServerRequest::Subscribe(id, channels) => {
                // The connection may have been cut while the request was held.
                if let Some(client) = self.clients.get_mut(&id).filter(|client| !client.is_cut) {
                    client.subscribed.extend(channels);
                }
            }
            ServerRequest::Unsubscribe(id, channels) => {
                if let Some(client) = self.clients.get_mut(&id) {
                    client.subscribed.retain(|channel| !channels.contains(channel));
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
                for client in self.clients.values_mut().filter(|client| client.subscribed.contains(&*channel)) {
                    client.inbox.message(channel.to_string(), payload.clone());
                    client.is_news.notify_one();
                    *self.delivered.entry(channel.to_string()).or_default() += 1;
                }
            }
        }
    }
}

impl Client {
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
