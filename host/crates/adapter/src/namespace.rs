//! What one namespace shares with the same namespace of other servers: requests to them, and what they ask of this one.

use std::sync::{Arc, OnceLock, RwLock, Weak};
use std::time::Duration;

use rmpv::Value;
use socketioxide_core::Sid;

use crate::ask::TRACEPARENT;
use crate::beat;
use crate::cluster::{Inner, Shared};
use crate::error::ClusterError;
use crate::local::Local;
use crate::lock::{read, write};
use crate::recall::Serving;
use crate::replay::Unsent;
use crate::serve;
use crate::wire::{Body, Channels, Flags, Message};

/// A namespace of this replica, as the cluster sees it.
pub struct Namespace {
    path: String,
    /// Among those of this replica; it is never another's.
    number: u64,
    inner: Weak<Inner>,
    channels: Channels,
    local: RwLock<Option<Arc<dyn Local>>>,
    describe: OnceLock<Box<Describe>>,
    answer: OnceLock<Box<AnswerEvent>>,
    trace: OnceLock<Box<TraceRequest>>,
}

/// What a socket is described by to other servers.
pub type Describe = dyn Fn(Sid) -> Description + Send + Sync;

/// What the server answers to a `serverSideEmit`: the event's name and its arguments in, the first argument of the ack out.
pub type AnswerEvent = dyn Fn(&str, Vec<Value>) -> Value + Send + Sync;

/// Who follows requests that are part of a trace: the `traceparent` in; out, whom to tell whether a socket acknowledged.
pub type TraceRequest = dyn Fn(&str) -> Option<RequestEnd> + Send + Sync;

/// Is told whether a socket acknowledged the request.
pub type RequestEnd = Box<dyn FnOnce(bool) + Send>;

/// What other servers are told of a socket beside its id and its rooms.
#[derive(Debug, Clone)]
pub struct Description {
    /// A map with any of the keys of [`RemoteSocket::handshake`](crate::wire::RemoteSocket::handshake); those that are missing are
    /// filled in, for Node's callers read them without a look whether they are there.
    pub handshake: Vec<(Value, Value)>,
    /// What the application attached to the socket; an empty map for nil.
    pub data: Value,
}

impl Default for Description {
    fn default() -> Self {
        Description { handshake: Vec::new(), data: Value::Nil }
    }
}

impl Namespace {
    pub(crate) fn new(path: &str, number: u64, inner: &Arc<Inner>) -> Self {
        Namespace {
            path: path.to_owned(),
            number,
            inner: Arc::downgrade(inner),
            channels: Channels::new(&inner.settings.channel_prefix, path, &inner.uid),
            local: RwLock::new(None),
            describe: OnceLock::new(),
            answer: OnceLock::new(),
            trace: OnceLock::new(),
        }
    }

    /// Its name, with the leading slash.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// How sockets are described to other servers' `fetchSockets()`. Only the first one counts.
    pub fn describe_sockets(&self, describe: impl Fn(Sid) -> Description + Send + Sync + 'static) {
        let _ = self.describe.set(Box::new(describe));
    }

    /// What other servers' `serverSideEmit` is answered with; nil when this is not set. Only the first one counts.
    pub fn answer_server_side(&self, answer: impl Fn(&str, Vec<Value>) -> Value + Send + Sync + 'static) {
        let _ = self.answer.set(Box::new(answer));
    }

    /// Who follows other servers' requests to sockets here that are part of a trace. Only the first one counts.
    pub fn trace_requests(&self, trace: impl Fn(&str) -> Option<RequestEnd> + Send + Sync + 'static) {
        let _ = self.trace.set(Box::new(trace));
    }

    /// Whom to tell how a request ends.
    pub(crate) fn trace_of(&self, flags: &Flags) -> Option<RequestEnd> {
        let trace = self.trace.get()?;
        trace(flags.get(TRACEPARENT)?.as_str()?)
    }

    /// The local sockets are there from now on, and the channels are subscribed to.
    pub(crate) fn open(&self, local: Arc<dyn Local>) {
        *write(&self.local) = Some(local);
        if let Some(inner) = self.inner() {
            inner.tail.forget();
            beat::attach(inner, self.channels.clone());
        }
    }

    /// The namespace was removed.
    pub(crate) async fn close(&self) {
        *write(&self.local) = None;
        let Some(inner) = self.inner() else { return };
        if let Some(shared) = inner.shared() {
            let channels = vec![self.channels.public.clone(), self.channels.private.clone()];
            if let Err(error) = shared.transport.unsubscribe(channels).await {
                tracing::debug!(%error, nsp = self.path, "the channels of a removed namespace are still subscribed");
            }
        }
    }

    /// A message of another server that is for this namespace.
    pub(crate) fn take(self: &Arc<Self>, message: Message) {
        if let Some(local) = self.local() {
            serve::message(self, &local, message);
        }
    }

    pub(crate) fn inner(&self) -> Option<Arc<Inner>> {
        self.inner.upgrade()
    }

    pub(crate) fn weak_inner(&self) -> Weak<Inner> {
        self.inner.clone()
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn local(&self) -> Option<Arc<dyn Local>> {
        read(&self.local).clone()
    }

    pub(crate) fn description(&self, socket: Sid) -> Description {
        self.describe.get().map(|describe| describe(socket)).unwrap_or_default()
    }

    /// A request to these rooms is being served from now on, until what is given is dropped.
    pub(crate) fn serving(&self, request_id: &str, rooms: Vec<String>) -> Option<Serving> {
        let inner = self.inner()?;
        inner.shared().map(|shared| shared.served.begin(request_id, rooms))
    }

    pub(crate) fn answer_to(&self, event: &str, args: Vec<Value>) -> Value {
        self.answer.get().map_or(Value::Nil, |answer| answer(event, args))
    }

    /// Appends to the stream; nothing happens when the replica is alone.
    pub(crate) fn append(&self, body: Body, unsent: Option<Box<Unsent>>) -> Result<(), ClusterError> {
        self.inner().map_or(Ok(()), |inner| inner.append(&self.path, body, unsent))
    }

    /// Publishes to every server (`None`) or to one.
    pub(crate) fn publish(&self, to: Option<&str>, body: Body, request: Option<String>) -> Result<(), ClusterError> {
        let Some(inner) = self.inner() else { return Ok(()) };
        let channel = match to {
            Some(uid) => Channels::private_of(&inner.settings.channel_prefix, &self.path, uid),
            None => self.channels.public.clone(),
        };
        inner.publish(channel, &self.path, body, request)
    }

    /// How many other servers there are.
    ///
    /// # Errors
    /// When Redis does not say.
    pub async fn other_servers(&self) -> Result<u64, ClusterError> {
        let Some(inner) = self.inner() else { return Ok(0) };
        let Some(shared) = inner.shared() else { return Ok(0) };
        let counts = shared.transport.subscribers(vec![self.channels.public.clone()]).await?;
        Ok(counts.first().copied().unwrap_or(0).saturating_sub(1))
    }

    /// How many of them are of another kind, as the last look found: Node's. Of the root namespace, whichever this is.
    #[must_use]
    pub fn foreign_servers(&self) -> u64 {
        self.inner().and_then(|inner| inner.shared().map(Shared::foreign)).unwrap_or(0)
    }

    /// Whether a server is subscribed to its private channel: its process lives.
    ///
    /// # Errors
    /// When Redis does not say.
    pub async fn is_served_by(&self, server: &str) -> Result<bool, ClusterError> {
        let Some(inner) = self.inner() else { return Ok(false) };
        let Some(shared) = inner.shared() else { return Ok(false) };
        let channel = Channels::private_of(&inner.settings.channel_prefix, &self.path, server);
        let counts = shared.transport.subscribers(vec![channel]).await?;
        Ok(counts.first().is_some_and(|count| *count > 0))
    }

    /// How long a request to all servers waits.
    pub(crate) fn request_timeout(&self) -> Duration {
        self.inner().map_or(Duration::ZERO, |inner| inner.settings.request_timeout)
    }
}
