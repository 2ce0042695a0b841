//! A connection to the server in memory.

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::ConnectionId;
use super::server::{Request, Server};
use crate::transport::{EntryId, Extent, Outgoing, Pending, Received, StreamEntry, Transport, TransportError};

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

    /// What the server's verbs call it.
    #[must_use]
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Has a request carried out, and waits while the server hangs.
    async fn ask(&self, request: Request) -> Result<(), TransportError> {
        self.server.change(|state| state.check(self.id).and_then(|()| state.take(request)))?;
        self.answered().await
    }

    /// Waits until the server does not hang: [`COMMAND_TIMEOUT`] at most, and not beyond the end of the connection.
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

    async fn read_from(
        &self,
        stream: &str,
        after: EntryId,
        count: u64,
        block: Duration,
    ) -> Result<Vec<StreamEntry>, TransportError> {
        let mut changes = self.server.changes();
        let (blocked_until, given_up_at) = (Instant::now() + block, Instant::now() + block + COMMAND_TIMEOUT);
        loop {
            let (is_hung, entries) = self.server.look(|state| {
                state.check(self.id)?;
                let entries = state.streams.get(stream).map(|stream| stream.read(after, count));
                Ok((state.is_hung, entries.unwrap_or_default()))
            })?;
            let now = Instant::now();
            match is_hung {
                false if !entries.is_empty() || now >= blocked_until => return Ok(entries),
                true if now >= given_up_at => return Err(TransportError::Timeout),
                _ => {}
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep_until(if is_hung { given_up_at } else { blocked_until }) => {}
            }
        }
    }

    async fn set_wanted(&self, channels: Vec<String>, is_wanted: bool) -> Result<(), TransportError> {
        self.server.look(|state| state.want(self.id, &channels, is_wanted));
        let request = match is_wanted {
            true => Request::Subscribe(self.id, channels),
            false => Request::Unsubscribe(self.id, channels),
        };
        match self.ask(request).await {
            // There is no subscription, and the next connection will not make one.
            Err(TransportError::Disconnected(_)) if !is_wanted => Ok(()),
            result => result,
        }
    }
}

impl Transport for MemoryConnection {
    fn send(&self, batch: Vec<Outgoing>) -> Pending<'_, Vec<Result<(), TransportError>>> {
        Box::pin(async move {
            let sent = batch.len();
            vec![self.ask(Request::Send(batch)).await; sent]
        })
    }

    fn read<'a>(
        &'a self,
        stream: &'a str,
        after: EntryId,
        count: u64,
        block: Duration,
    ) -> Pending<'a, Result<Vec<StreamEntry>, TransportError>> {
        Box::pin(self.read_from(stream, after, count, block))
    }

    fn range<'a>(
        &'a self,
        stream: &'a str,
        last: EntryId,
        count: u64,
    ) -> Pending<'a, Result<Vec<StreamEntry>, TransportError>> {
        Box::pin(async move {
            self.answered().await?;
            let range = self.server.look(|state| state.streams.get(stream).map(|stream| stream.range(last, count)));
            Ok(range.unwrap_or_default())
        })
    }

    fn extent<'a>(&'a self, stream: &'a str) -> Pending<'a, Result<Extent, TransportError>> {
        Box::pin(async move {
            self.answered().await?;
            Ok(self.server.look(|state| state.streams.get(stream).map(|stream| stream.extent()).unwrap_or_default()))
        })
    }

    fn subscribe(&self, channels: Vec<String>) -> Pending<'_, Result<(), TransportError>> {
        Box::pin(self.set_wanted(channels, true))
    }

    fn unsubscribe(&self, channels: Vec<String>) -> Pending<'_, Result<(), TransportError>> {
        Box::pin(self.set_wanted(channels, false))
    }

    fn receive(&self) -> Pending<'_, Received> {
        Box::pin(async move {
            loop {
                match self.server.look(|state| state.receive(self.id)) {
                    Ok(Some(received)) => return received,
                    Ok(None) => self.is_news.notified().await,
                    Err(_) => return Received::Closed,
                }
            }
        })
    }

    fn subscribers(&self, channels: Vec<String>) -> Pending<'_, Result<Vec<u64>, TransportError>> {
        Box::pin(async move {
            self.answered().await?;
            Ok(self.server.look(|state| channels.iter().map(|channel| state.subscribers(channel)).collect()))
        })
    }

    fn close(&self) -> Pending<'_, ()> {
        Box::pin(async move { self.server.change(|state| state.close(self.id)) })
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
