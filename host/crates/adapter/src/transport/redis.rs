//! A real Redis, by the client library fred.
//!
//! There are three connections, because a command after a blocking one waits, and a subscribed connection accepts few commands:
//!
//! - the writer sends XADD, PUBLISH, scripts, and other commands with quick answers;
//! - the reader sends only XREAD BLOCK;
//! - the subscriber is subscribed to the channels.
//!
//! Each connection has a fred client of its own without a reconnect policy. When a connection is lost, its client is dropped and a new
//! one is made. So fred can neither send a command twice nor keep commands for a later connection, and everything that a client
//! receives belongs to one connection.

mod batch;
mod blocking_reader;
mod channel_table;
mod connection;
mod connector;
mod event_feed;
mod options;
mod reply;
mod script;
mod subscriber;
mod url;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use fred::interfaces::{PubsubInterface, StreamsInterface};

use self::blocking_reader::BlockingReader;
use self::connection::Connection;
use self::connector::{Connector, Role};
use self::subscriber::Subscriber;
use super::types::{EntryId, Extent, Outgoing, Received, StreamEntry, Transport, TransportError};

pub use self::options::RedisOptions;
pub use self::script::ScriptReply;

/// A Redis server, or a compatible one. Its connections are kept in the background and made anew whenever they are lost.
pub struct Redis {
    writer: Connection,
    reader: BlockingReader,
    subscriber: Subscriber,
    mode: batch::SendMode,
    /// Host and port, or a path. Never the credentials.
    server: String,
}

impl Redis {
    /// Starts to connect and returns at once, even if Redis is away. Call it inside a tokio runtime.
    ///
    /// The URL is `redis://[user:password@]host[:port][/database]`, `rediss://` for TLS, or `unix:///path`
    /// (`redis+unix://`). Redis Cluster and Sentinel are not supported.
    ///
    /// # Errors
    /// [`TransportError::Disconnected`] says what is wrong with the URL, without quoting it.
    pub fn start(url: &str, options: RedisOptions) -> Result<Redis, TransportError> {
        let connector = Arc::new(Connector::new(url::parse(url)?, options));
        Ok(Redis {
            writer: Connection::start(Role::Writer, connector.clone()),
            reader: BlockingReader::start(connector.clone()),
            subscriber: Subscriber::start(connector.clone()),
            mode: batch::SendMode::new(&connector.options),
            server: connector.server(),
        })
    }

    /// Runs a Lua script on the writing connection (EVAL). It runs as one step, and is sent once.
    ///
    /// # Errors
    /// Those of any command. Only [`TransportError::Refused`], by a script that writes nothing before it fails, proves that nothing
    /// happened.
    pub async fn evaluate(
        &self,
        script: &'static str,
        keys: Vec<String>,
        args: Vec<Bytes>,
    ) -> Result<ScriptReply, TransportError> {
        script::evaluate(&self.writer, script, keys, args).await
    }
}

#[async_trait]
impl Transport for Redis {
    async fn send(&self, batch: Vec<Outgoing>) -> Vec<Result<(), TransportError>> {
        batch::send(&self.writer, &self.mode, batch).await
    }

    async fn read(
        &self,
        stream: &str,
        after: EntryId,
        count: u64,
        block: Duration,
    ) -> Result<Vec<StreamEntry>, TransportError> {
        self.reader.read(stream, after, count, block).await
    }

    async fn range(&self, stream: &str, last: EntryId, count: u64) -> Result<Vec<StreamEntry>, TransportError> {
        let mut writer = self.writer.live()?;
        let client = writer.client.clone();
        let answer = client.xrevrange(stream, last.to_string(), "-", Some(count.max(1)));
        let mut entries = reply::entries_of_one(writer.answer(answer).await?)?;
        entries.reverse();
        Ok(entries)
    }

    async fn extent(&self, stream: &str) -> Result<Extent, TransportError> {
        let mut writer = self.writer.live()?;
        let client = writer.client.clone();
        match writer.answer(client.xinfo_stream(stream, false, None)).await {
            Err(TransportError::Refused(why)) if why.contains("no such key") => Ok(Extent::default()),
            answer => reply::extent(answer?),
        }
    }

    async fn subscribe(&self, channels: Vec<String>) -> Result<(), TransportError> {
        self.subscriber.subscribe(channels).await
    }

    async fn unsubscribe(&self, channels: Vec<String>) -> Result<(), TransportError> {
        self.subscriber.unsubscribe(channels).await
    }

    async fn receive(&self) -> Received {
        self.subscriber.receive().await
    }

    async fn subscribers(&self, channels: Vec<String>) -> Result<Vec<u64>, TransportError> {
        let mut writer = self.writer.live()?;
        if channels.is_empty() {
            return Ok(Vec::new());
        }
        let (client, asked) = (writer.client.clone(), channels.clone());
        let counts = writer.answer(async {
            match self.mode.is_sharded {
                true => client.pubsub_shardnumsub(asked).await,
                false => client.pubsub_numsub(asked).await,
            }
        });
        reply::counts(counts.await?, &channels)
    }

    async fn close(&self) {
        tokio::join!(self.writer.close(), self.reader.close(), self.subscriber.close());
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis")
            .field("server", &self.server)
            .field("sharded", &self.mode.is_sharded)
            .finish_non_exhaustive()
    }
}
