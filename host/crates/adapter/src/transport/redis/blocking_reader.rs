//! Reads the stream over a connection of its own, because a blocking read delays every command after it.

use std::{sync::Arc, time::Duration};

use fred::interfaces::{ClientLike, StreamsInterface};
use fred::types::config::Options;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::connection::Connection;
use super::connector::{Connector, Role};
use super::reply;
use crate::transport::types::{EntryId, StreamEntry, TransportError};

/// Reads streams, one read at a time.
pub(super) struct BlockingReader {
    connection: Connection,
    /// Until when the connection may be blocked. A read whose future was dropped still blocks.
    blocked_until: Mutex<Instant>,
    command_timeout: Duration,
}

impl BlockingReader {
    pub(super) fn start(connector: Arc<Connector>) -> BlockingReader {
        let command_timeout = connector.options.command_timeout;
        let connection = Connection::start(Role::Reader, connector);
        BlockingReader { connection, blocked_until: Mutex::new(Instant::now()), command_timeout }
    }

    pub(super) async fn read(
        &self,
        stream: &str,
        after: EntryId,
        count: u64,
        block: Duration,
    ) -> Result<Vec<StreamEntry>, TransportError> {
        let mut blocked_until = self.blocked_until.lock().await;
        let mut live = self.connection.live()?;
        let now = Instant::now();
        *blocked_until = now.max(*blocked_until) + block;
        let timeout = *blocked_until - now + self.command_timeout;
        let client = live.client.with_options(&Options { timeout: Some(timeout), ..Options::default() });
        // `BLOCK 0` would block forever.
        let block_ms = u64::try_from(block.as_millis()).ok().filter(|ms| *ms > 0);
        let answer = client.xread(Some(count.max(1)), block_ms, stream, after.to_string());
        let answer = live.answer(answer).await;
        *blocked_until = Instant::now();
        if answer == Err(TransportError::Timeout) {
            self.connection.renew();
        }
        reply::entries(answer?)
    }

    pub(super) async fn close(&self) {
        self.connection.close().await;
    }
}
