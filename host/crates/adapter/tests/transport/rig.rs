//! Offers what a test of the contract needs of a transport and its server.

use std::{future::Future, sync::Arc, time::Duration};

use socketioxide_redis_streams::transport::{EntryId, Outgoing, Received, StreamEntry, Transport, TransportError};

/// Longer than anything takes on a machine that is busy.
pub(crate) const AT_LAST: Duration = Duration::from_secs(20);

/// A server, and how connections to it are made.
pub(crate) trait Rig {
    fn connect(&self) -> Arc<dyn Transport>;
    /// How many messages wait in a connection before some are missed.
    fn messages_max(&self) -> usize;
    /// Stops the server; it forgets its streams.
    async fn stop(&mut self);
    async fn start(&mut self);
}

/// Waits for something that must come.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(AT_LAST, future).await.expect("it did not come")
}

/// Tries until it is so.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(mut attempt: impl FnMut() -> F) -> T {
    within(async {
        loop {
            match attempt().await {
                Some(value) => return value,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    })
    .await
}

/// A connection that is there altogether.
pub(crate) async fn connected(rig: &impl Rig) -> Arc<dyn Transport> {
    let transport = rig.connect();
    settled(&*transport).await;
    transport
}

/// Waits until a connection can send, read, and receive.
pub(crate) async fn settled(transport: &dyn Transport) {
    assert_eq!(within(transport.receive()).await, Received::Restored);
    until(|| async { transport.extent("none").await.ok() }).await;
    until(|| async { transport.read("none", EntryId::default(), 1, Duration::ZERO).await.ok() }).await;
}

pub(crate) fn entry(stream: &str, text: &str) -> Outgoing {
    let fields = vec![("uid", "0123456789abcdef".to_owned()), ("data", text.to_owned())];
    Outgoing::Append { stream: stream.into(), fields, len_max: 10_000 }
}

pub(crate) fn message(channel: &str, text: impl ToString) -> Outgoing {
    Outgoing::Publish { channel: channel.into(), payload: text.to_string().into_bytes().into() }
}

pub(crate) fn received(channel: &str, text: impl ToString) -> Received {
    Received::Message { channel: channel.to_owned(), payload: text.to_string().into_bytes().into() }
}

/// Sends a batch of which everything must arrive.
pub(crate) async fn send(transport: &dyn Transport, batch: Vec<Outgoing>) {
    let sent = batch.len();
    assert_eq!(within(transport.send(batch)).await, vec![Ok(()); sent]);
}

pub(crate) async fn read(transport: &dyn Transport, stream: &str, after: EntryId, count: u64) -> Vec<StreamEntry> {
    within(transport.read(stream, after, count, Duration::from_millis(1))).await.unwrap()
}

/// The texts of entries that [`entry`] made.
pub(crate) fn texts(entries: &[StreamEntry]) -> Vec<&str> {
    entries.iter().map(|entry| std::str::from_utf8(&entry.fields[1].1).unwrap()).collect()
}

pub(crate) async fn subscribe(transport: &dyn Transport, channels: &[&str]) {
    within(transport.subscribe(names(channels))).await.unwrap();
}

pub(crate) async fn subscribers(transport: &dyn Transport, channels: &[&str]) -> Vec<u64> {
    within(transport.subscribers(names(channels))).await.unwrap()
}

pub(crate) fn names(channels: &[&str]) -> Vec<String> {
    channels.iter().map(ToString::to_string).collect()
}

pub(crate) fn is_disconnected<T>(result: &Result<T, TransportError>) -> bool {
    matches!(result, Err(TransportError::Disconnected(_)))
}
