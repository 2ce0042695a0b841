//! A replica's connections, of which one is subscribed, as with a real Redis. They can be cut, and they can hang as those of a
//! process do that is stopped: they stay open, and nothing is sent or taken.

use std::sync::Arc;
use std::time::Duration;

use socketioxide_redis_streams::transport::memory::{Memory, MemoryConnection};
use socketioxide_redis_streams::transport::{
    EntryId, Extent, Outgoing, Pending, Received, StreamEntry, Transport, TransportError,
};
use tokio::sync::watch;

#[derive(Clone)]
pub(crate) struct Line {
    redis: Memory,
    connection: Arc<MemoryConnection>,
    subscriber: Arc<MemoryConnection>,
    hung: watch::Sender<bool>,
    late: watch::Sender<Vec<Answer>>,
}

/// Whose answers can be late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Answer {
    Read,
    Range,
    Extent,
}

impl Line {
    pub(crate) fn new(redis: &Memory) -> Self {
        Line {
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

    /// The other connection stays.
    pub(crate) fn cut_subscription(&self) {
        self.redis.cut(self.subscriber.id());
    }

    /// Ends either cut.
    pub(crate) fn restore(&self) {
        self.redis.restore(self.connection.id());
        self.redis.restore(self.subscriber.id());
    }

    /// Drops the next messages that are published to it.
    pub(crate) fn lag(&self, messages: u64) {
        self.redis.lag(self.subscriber.id(), messages);
    }

    pub(crate) fn set_hung(&self, hung: bool) {
        self.hung.send_replace(hung);
    }

    /// The answers to these are on their way, until others are named.
    pub(crate) fn set_late(&self, answers: &[Answer]) {
        self.late.send_replace(answers.to_vec());
    }

    /// An answer that may be late.
    fn answered<'a, T: Send + 'a>(&'a self, answer: Answer, doing: Pending<'a, T>) -> Pending<'a, T> {
        let doing = self.held(doing);
        Box::pin(async move {
            let result = doing.await;
            self.late.subscribe().wait_for(|late| !late.contains(&answer)).await.unwrap();
            result
        })
    }

    /// The result of something, held back while the process hangs.
    fn held<'a, T: Send + 'a>(&'a self, doing: Pending<'a, T>) -> Pending<'a, T> {
        Box::pin(async move {
            self.runs().await;
            let result = doing.await;
            self.runs().await;
            result
        })
    }

    async fn runs(&self) {
        self.hung.subscribe().wait_for(|hung| !hung).await.unwrap();
    }
}

impl Transport for Line {
    fn send(&self, batch: Vec<Outgoing>) -> Pending<'_, Vec<Result<(), TransportError>>> {
        self.held(self.connection.send(batch))
    }

    fn read<'a>(
        &'a self,
        stream: &'a str,
        after: EntryId,
        count: u64,
        block: Duration,
    ) -> Pending<'a, Result<Vec<StreamEntry>, TransportError>> {
        self.answered(Answer::Read, self.connection.read(stream, after, count, block))
    }

    fn range<'a>(
        &'a self,
        stream: &'a str,
        last: EntryId,
        count: u64,
    ) -> Pending<'a, Result<Vec<StreamEntry>, TransportError>> {
        self.answered(Answer::Range, self.connection.range(stream, last, count))
    }

    fn extent<'a>(&'a self, stream: &'a str) -> Pending<'a, Result<Extent, TransportError>> {
        self.answered(Answer::Extent, self.connection.extent(stream))
    }

    fn subscribe(&self, channels: Vec<String>) -> Pending<'_, Result<(), TransportError>> {
        self.held(self.subscriber.subscribe(channels))
    }

    fn unsubscribe(&self, channels: Vec<String>) -> Pending<'_, Result<(), TransportError>> {
        self.held(self.subscriber.unsubscribe(channels))
    }

    fn receive(&self) -> Pending<'_, Received> {
        self.held(self.subscriber.receive())
    }

    fn subscribers(&self, channels: Vec<String>) -> Pending<'_, Result<Vec<u64>, TransportError>> {
        self.held(self.connection.subscribers(channels))
    }

    fn close(&self) -> Pending<'_, ()> {
        self.held(Box::pin(async {
            self.connection.close().await;
            self.subscriber.close().await;
        }))
    }
}
