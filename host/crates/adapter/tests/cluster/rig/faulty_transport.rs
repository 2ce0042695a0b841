//! A replica's connections to Redis, which can be cut, and can hang as those of a suspended process: they stay open, and nothing is sent
//! or received. One of them is subscribed, as with a real Redis.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use socketioxide_redis_streams::transport::memory::{Memory, MemoryConnection};
use socketioxide_redis_streams::transport::{
    EntryId, Extent, Outgoing, Received, StreamEntry, Transport, TransportError,
};
use tokio::sync::watch;

#[derive(Clone)]
pub(crate) struct FaultyTransport {
    redis: Memory,
    connection: Arc<MemoryConnection>,
    subscriber: Arc<MemoryConnection>,
    hung: watch::Sender<bool>,
    late: watch::Sender<Vec<Answer>>,
}

/// The commands whose answers can be delayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Answer {
    Read,
    Range,
    Extent,
}

impl FaultyTransport {
    pub(crate) fn new(redis: &Memory) -> Self {
        FaultyTransport {
            redis: redis.clone(),
            connection: Arc::new(redis.connect()),
            subscriber: Arc::new(redis.connect()),
            hung: watch::Sender::new(false),
            late: watch::Sender::new(Vec::new()),
        }
    }

    pub(crate) fn cut(&self) {
        self.redis.cut(self.connection.id());
        self.cut_subscription();
    }

    /// Cuts only the subscribed connection.
    pub(crate) fn cut_subscription(&self) {
        self.redis.cut(self.subscriber.id());
    }

    /// Restores both connections.
    pub(crate) fn restore(&self) {
        self.redis.restore(self.connection.id());
        self.redis.restore(self.subscriber.id());
    }

    /// Drops the next messages that are published to the replica.
    pub(crate) fn lag(&self, messages: u64) {
        self.redis.lag(self.subscriber.id(), messages);
    }

    pub(crate) fn set_hung(&self, hung: bool) {
        self.hung.send_replace(hung);
    }

    /// Delays the answers to these commands, until this is called again.
    pub(crate) fn set_late(&self, answers: &[Answer]) {
        self.late.send_replace(answers.to_vec());
    }

    /// The result of a command, held back while the process hangs, and while answers of this kind are late.
    async fn answered<T>(&self, answer: Answer, command: impl Future<Output = T>) -> T {
        let result = self.held(command).await;
        self.late.subscribe().wait_for(|late| !late.contains(&answer)).await.unwrap();
        result
    }

    /// The result of a command, held back while the process hangs.
    async fn held<T>(&self, command: impl Future<Output = T>) -> T {
        self.runs().await;
        let result = command.await;
        self.runs().await;
        result
    }

    async fn runs(&self) {
        self.hung.subscribe().wait_for(|hung| !hung).await.unwrap();
    }
}

#[async_trait]
impl Transport for FaultyTransport {
    async fn send(&self, batch: Vec<Outgoing>) -> Vec<Result<(), TransportError>> {
        self.held(self.connection.send(batch)).await
    }

    async fn read(
        &self,
        stream: &str,
        after: EntryId,
        count: u64,
        block: Duration,
    ) -> Result<Vec<StreamEntry>, TransportError> {
        self.answered(Answer::Read, self.connection.read(stream, after, count, block)).await
    }

    async fn range(&self, stream: &str, last: EntryId, count: u64) -> Result<Vec<StreamEntry>, TransportError> {
        self.answered(Answer::Range, self.connection.range(stream, last, count)).await
    }

    async fn extent(&self, stream: &str) -> Result<Extent, TransportError> {
        self.answered(Answer::Extent, self.connection.extent(stream)).await
    }

    async fn subscribe(&self, channels: Vec<String>) -> Result<(), TransportError> {
        self.held(self.subscriber.subscribe(channels)).await
    }

    async fn unsubscribe(&self, channels: Vec<String>) -> Result<(), TransportError> {
        self.held(self.subscriber.unsubscribe(channels)).await
    }

    async fn receive(&self) -> Received {
        self.held(self.subscriber.receive()).await
    }

    async fn subscribers(&self, channels: Vec<String>) -> Result<Vec<u64>, TransportError> {
        self.held(self.connection.subscribers(channels)).await
    }

    async fn close(&self) {
        self.held(async {
            self.connection.close().await;
            self.subscriber.close().await;
        })
        .await;
    }
}
