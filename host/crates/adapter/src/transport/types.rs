//! What the adapter needs of Redis: the trait, and the types of its arguments and results.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use thiserror::Error;

/// What the adapter needs of Redis. Every method may be called while Redis is away. It then fails within a bounded time, and never
/// queues without a bound.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Sends a batch in its order over the writing connection. Returns one result for each message, in the same order. An error means
    /// that Redis did not confirm the message, not that it did not get it. Nothing is sent twice.
    async fn send(&self, batch: Vec<Outgoing>) -> Vec<Result<(), TransportError>>;

    /// Reads at most `count` entries after `after`, and waits up to `block` for the first. Empty if none came. Only one call at a time.
    async fn read(
        &self,
        stream: &str,
        after: EntryId,
        count: u64,
        block: Duration,
    ) -> Result<Vec<StreamEntry>, TransportError>;

    /// The last `count` entries up to and including `last`, in the order of the stream. Fewer only where the stream begins.
    async fn range(&self, stream: &str, last: EntryId, count: u64) -> Result<Vec<StreamEntry>, TransportError>;

    /// The extent of a stream; [`Extent::default`] if it does not exist.
    async fn extent(&self, stream: &str) -> Result<Extent, TransportError>;

    /// Subscribes to channels for good: after a reconnect they are subscribed again before [`Received::Restored`]. An error means that
    /// the subscription is not confirmed. The channels stay wanted unless Redis refused them.
    async fn subscribe(&self, channels: Vec<String>) -> Result<(), TransportError>;

    /// Ends subscriptions.
    async fn unsubscribe(&self, channels: Vec<String>) -> Result<(), TransportError>;

    /// Waits for the next event of the subscription, in the order of arrival. Only one task may call it.
    async fn receive(&self) -> Received;

    /// How many connections are subscribed to each channel, in the order of `channels` (`PUBSUB NUMSUB`).
    async fn subscribers(&self, channels: Vec<String>) -> Result<Vec<u64>, TransportError>;

    /// Closes all connections. Later calls fail with [`TransportError::Closed`], and `receive` returns [`Received::Closed`].
    async fn close(&self);
}

/// A command for the writing connection.
#[derive(Debug, Clone)]
pub enum Outgoing {
    /// `XADD stream MAXLEN ~ len_max * fields`.
    Append {
        /// The name of the stream.
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

/// An event of the subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Message {
        /// Its channel.
        channel: String,
        /// What was published.
        payload: Bytes,
    },
    /// So many messages came in faster than they were received, and are lost.
    Missed(u64),
    /// The connection is lost: messages that are published from now on are missed.
    Interrupted,
    /// The connection is up with all its subscriptions, for the first time or again.
    Restored,
    /// The transport was closed.
    Closed,
}

/// The id of an entry of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntryId {
    /// Milliseconds since 1970, by the clock of Redis.
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
    /// The last id that was given, even if that entry is trimmed.
    pub last: EntryId,
    /// How many entries were ever added. `None` from a Redis before 7, which does not count them.
    pub added: Option<u64>,
    /// How many entries there are.
    pub len: u64,
}

impl Default for Extent {
    /// The extent of a stream that does not exist.
    fn default() -> Self {
        Extent { last: EntryId::default(), added: Some(0), len: 0 }
    }
}

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TransportError {
    /// There is no connection now.
    #[error("not connected: {0}")]
    Disconnected(String),
    /// Redis did not answer in time.
    #[error("no answer in time")]
    Timeout,
    /// Redis refused the command.
    #[error("refused: {0}")]
    Refused(String),
    /// The answer of Redis does not fit the command.
    #[error("unexpected reply: {0}")]
    Reply(String),
    /// The transport was closed.
    #[error("closed")]
    Closed,
}
