//! The connection that blocks.

use std::{sync::Arc, time::Duration};

use fred::interfaces::{ClientLike, StreamsInterface};
use fred::types::config::Options;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::connector::{Connector, Role};
use super::link::Link;
use super::reply;
use crate::transport::types::{EntryId, StreamEntry, TransportError};

/// Reads streams, one read at a time: the next one waits.
pub(super) struct Reader {
    link: Link,
    /// Until when the connection may be blocked: a read that was dropped blocks on.
    blocked_until: Mutex<Instant>,
    command_timeout: Duration,
}

impl Reader {
    pub(super) fn start(connector: Arc<Connector>) -> Reader {
        let command_timeout = connector.options.command_timeout;
        let link = Link::start(Role::Reader, connector);
        Reader { link, blocked_until: Mutex::new(Instant::now()), command_timeout }
    }

    pub(super) async fn read(
        &self,
        stream: &str,
        after: EntryId,
        count: u64,
        block: Duration,
    ) -> Result<Vec<StreamEntry>, TransportError> {
        let mut blocked_until = self.blocked_until.lock().await;
        let mut live = self.link.live()?;
        let now = Instant::now();
        *blocked_until = now.max(*blocked_until) + block;
        let timeout = *blocked_until - now + self.command_timeout;
        let client = live.client.with_options(&Options { timeout: Some(timeout), ..Options::default() });
        // `BLOCK 0` would block for ever.
        let block_ms = u64::try_from(block.as_millis()).ok().filter(|ms| *ms > 0);
        let answer = client.xread(Some(count.max(1)), block_ms, stream, after.to_string());
        let answer = live.answer(answer).await;
        *blocked_until = Instant::now();
        if answer == Err(TransportError::Timeout) {
            self.link.doubt();
        }
        reply::entries(answer?)
    }

    pub(super) async fn close(&self) {
        self.link.close().await;
    }
}
