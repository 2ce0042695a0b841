//! What the adapter needs of Redis, as one small trait, so that the client library can be exchanged and a cluster can run
//! in one process.
//!
//! - [`redis`]: three connections by fred, one to write, one that blocks in XREAD, one that is subscribed.
//! - [`memory`]: a Redis of the process's own, for clusters inside one test, with simulated time if the runtime's is paused.

pub mod memory;
#[cfg(feature = "fred")]
pub mod redis;

use std::{fmt, future::Future, pin::Pin, str::FromStr, sync::Arc, time::Duration};

use bytes::Bytes;
use thiserror::Error;

/// A future of a [`Transport`], boxed so that the trait can be an object.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the adapter needs of Redis. Each method is safe to call while Redis is away: it gives an error within a bounded time and
/// never queues without a bound.
pub trait Transport: Send + Sync + 'static {
    /// Sends a batch in its order over the writing connection. One result for each, in the same order: its error says that
    /// Redis did not confirm it, not that it did not happen. Nothing is sent twice.
    fn send(&self, batch: Vec<Outgoing>) -> Pending<'_, Vec<Result<(), TransportError>>>;

    /// Reads at most `count` entries behind `after`, and waits up to `block` for the first. Empty when none came. To be called
    /// one at a time.
    fn read<'a>(
        &'a self,
        stream: &'a str,
        after: EntryId,
        count: u64,
        block: Duration,
    ) -> Pending<'a, Result<Vec<StreamEntry>, TransportError>>;

    /// The last `count` entries up to `last`, which is one of them if it is there, in the stream's order: fewer only where the stream
    /// begins.
    fn range<'a>(
        &'a self,
        stream: &'a str,
        last: EntryId,
        count: u64,
    ) -> Pending<'a, Result<Vec<StreamEntry>, TransportError>>;

    /// How far a stream reaches; of one that does not exist, [`Extent::default`].
    fn extent<'a>(&'a self, stream: &'a str) -> Pending<'a, Result<Extent, TransportError>>;

    /// Subscribes to channels, for good: after a reconnect they are subscribed again before [`Received::Restored`] is told.
    /// An error says that it is not confirmed; the channels stay wanted unless Redis refused them.
    fn subscribe(&self, channels: Vec<String>) -> Pending<'_, Result<(), TransportError>>;

    /// Ends subscriptions.
    fn unsubscribe(&self, channels: Vec<String>) -> Pending<'_, Result<(), TransportError>>;

    /// The next thing that the subscription brought, in the order of arrival. One task alone calls it.
    fn receive(&self) -> Pending<'_, Received>;

    /// How many connections are subscribed to each channel, in the order asked (`PUBSUB NUMSUB`).
    fn subscribers(&self, channels: Vec<String>) -> Pending<'_, Result<Vec<u64>, TransportError>>;

    /// Closes all connections. What is called later gives [`TransportError::Closed`], and `receive` [`Received::Closed`].
    fn close(&self) -> Pending<'_, ()>;
}

/// Something to be sent.
#[derive(Debug, Clone)]
pub enum Outgoing {
    /// `XADD stream MAXLEN ~ len_max * fields`.
    Append {
        /// The stream.
        stream: Arc<str>,
        /// Its fields.
        fields: Vec<(&'static str, String)>,
        /// About how many entries the stream keeps.
        len_max: u64,
    },
    /// `PUBLISH channel payload`.
    Publish {
        /// The channel.
        channel: Arc<str>,
        /// The message.
        payload: Bytes,
    },
}

/// What a subscription brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Message {
        /// Its channel.
        channel: String,
        /// What was published.
        payload: Bytes,
    },
    /// So many messages came in faster than they were taken, and are gone.
    Missed(u64),
    /// The connection is gone: whatever is published from here on is missed.
    Interrupted,
    /// The connection is there with all its subscriptions: for the first time, or again.
    Restored,
    /// The transport was closed.
    Closed,
}

/// The id of a stream's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntryId {
    /// Milliseconds since 1970, as Redis saw them.
    pub ms: u64,
    /// Orders the entries of one millisecond.
    pub seq: u64,
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

impl FromStr for EntryId {
    type Err = TransportError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id =
            text.split_once('-').and_then(|(ms, seq)| Some(EntryId { ms: ms.parse().ok()?, seq: seq.parse().ok()? }));
        id.ok_or_else(|| TransportError::Reply(format!("no entry id: {text:?}")))
    }
}

/// An entry of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEntry {
    /// Its id.
    pub id: EntryId,
    /// Its fields.
    pub fields: Vec<(Bytes, Bytes)>,
}

/// How far a stream reaches (`XINFO STREAM`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The id that was given last, also when that entry is trimmed.
    pub last: EntryId,
    /// How many entries were ever added; `None` from a Redis before 7, which does not count them.
    pub added: Option<u64>,
    /// How many there are.
    pub len: u64,
}

impl Default for Extent {
    /// Of a stream that does not exist: nothing was added yet.
    fn default() -> Self {
        Extent { last: EntryId::default(), added: Some(0), len: 0 }
    }
}

/// Why Redis did not do it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TransportError {
    /// There is no connection at the moment.
    #[error("not connected: {0}")]
    Disconnected(String),
    /// It did not answer in time.
    #[error("no answer in time")]
    Timeout,
    /// It refused the command.
    #[error("refused: {0}")]
    Refused(String),
    /// Its answer is not what the command gives.
    #[error("unexpected reply: {0}")]
    Reply(String),
    /// The transport was closed.
    #[error("closed")]
    Closed,
}
