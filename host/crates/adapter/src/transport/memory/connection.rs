//! A connection to the server in memory, as a transport.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::server::{ConnectionId, Server, ServerRequest};
use crate::transport::types::{EntryId, Extent, Outgoing, Received, StreamEntry, Transport, TransportError};

/// How long a command waits for a server that hangs.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection to a [`Memory`](super::Memory).
pub struct MemoryConnection {
    server: Arc<Server>,
    id: ConnectionId,
    is_news: Arc<Notify>,
}

impl MemoryConnection {
    pub(super) fn new(server: Arc<Server>) -> MemoryConnection {
        let (id, is_news) = server.look(|state| state.connect());
        MemoryConnection { server, id, is_news }
    }

    /// Its id, for the methods of the server.
    #[must_use]
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Sends a request, and waits while the server hangs.
    async fn request(&self, request: ServerRequest) -> Result<(), TransportError> {
        self.server.change(|state| state.check(self.id).and_then(|()| state.take(request)))?;
        self.answered().await
    }

    /// Waits until the server does not hang, at most for [`COMMAND_TIMEOUT`]. Fails if the connection ends meanwhile.
    async fn answered(&self) -> Result<(), TransportError> {
        let deadline = Instant::now() + COMMAND_TIMEOUT;
        let mut changes = self.server.changes();
        while self.server.look(|state| state.check(self.id).map(|()| state.is_hung))? {
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep_until(deadline) => return Err(TransportError::Timeout),
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Transport for MemoryConnection {
    async fn send(&self, batch: Vec<Outgoing>) -> Vec<Result<(), TransportError>> {
        let sent = batch.len();
        vec![self.request(ServerRequest::Send(batch)).await; sent]
    }

    async fn read(
        &self,
        stream: &str,
        after: EntryId,
        count: u64,
        block: Duration,
    ) -> Result<Vec<StreamEntry>, TransportError> {
        let mut changes = self.server.changes();
        let blocked_until = Instant::now() + block;
        let give_up_at = blocked_until + COMMAND_TIMEOUT;
        loop {
            let (is_hung, entries) = self.server.look(|state| {
                state.check(self.id)?;
                let entries = state.streams.get(stream).map(|stream| stream.read(after, count));
                Ok((state.is_hung, entries.unwrap_or_default()))
            })?;
            let now = Instant::now();
            match is_hung {
                false if !entries.is_empty() || now >= blocked_until => return Ok(entries),
                true if now >= give_up_at => return Err(TransportError::Timeout),
                _ => {}
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep_until(if is_hung { give_up_at } else { blocked_until }) => {}
            }
        }
    }

    async fn range(&self, stream: &str, last: EntryId, count: u64) -> Result<Vec<StreamEntry>, TransportError> {
        self.answered().await?;
        let range = self.server.look(|state| state.streams.get(stream).map(|stream| stream.range(last, count)));
        Ok(range.unwrap_or_default())
    }

    async fn extent(&self, stream: &str) -> Result<Extent, TransportError> {
        self.answered().await?;
        Ok(self.server.look(|state| state.streams.get(stream).map(|stream| stream.extent()).unwrap_or_default()))
    }

    async fn subscribe(&self, channels: Vec<String>) -> Result<(), TransportError> {
        self.server.look(|state| state.want(self.id, &channels, true));
        self.request(ServerRequest::Subscribe(self.id, channels)).await
    }

    async fn unsubscribe(&self, channels: Vec<String>) -> Result<(), TransportError> {
        self.server.look(|state| state.want(self.id, &channels, false));
        match self.request(ServerRequest::Unsubscribe(self.id, channels)).await {
            // Without a connection there is no subscription, and the next connection will not make one.
            Err(TransportError::Disconnected(_)) => Ok(()),
            result => result,
        }
    }

    async fn receive(&self) -> Received {
        loop {
            match self.server.look(|state| state.receive(self.id)) {
                Ok(Some(received)) => return received,
                Ok(None) => self.is_news.notified().await,
                Err(_) => return Received::Closed,
            }
        }
    }

    async fn subscribers(&self, channels: Vec<String>) -> Result<Vec<u64>, TransportError> {
        self.answered().await?;
        Ok(self.server.look(|state| channels.iter().map(|channel| state.subscribers(channel)).collect()))
    }

    async fn close(&self) {
        self.server.change(|state| state.close(self.id));
    }
}

impl Drop for MemoryConnection {
    fn drop(&mut self) {
        self.server.change(|state| state.close(self.id));
    }
}

impl fmt::Debug for MemoryConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryConnection").field("id", &self.id).finish_non_exhaustive()
    }
}
