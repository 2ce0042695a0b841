//! Sends the messages in the outbox to Redis.

use std::sync::Arc;

use metrics::Counter;

use super::peer_batch::pack;
use super::publisher::Publisher;
use super::queue::QueuedMessage;
use crate::transport::{FailureLog, Outgoing, Transport, TransportError};

/// One of the two media, with its metrics and its log.
struct Medium {
    name: &'static str,
    published: Counter,
    failures: FailureLog,
}

/// The task that sends what is in the outbox.
pub(crate) struct Writer {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) publisher: Arc<Publisher>,
    /// Whether a server unpacks batches.
    pub(crate) unpacks_batches: Box<dyn Fn(&str) -> bool + Send + Sync>,
    /// Is called with the id of each request that could not be sent.
    pub(crate) on_lost_request: Box<dyn Fn(&str) + Send + Sync>,
}

impl Writer {
    /// Runs until the outbox is closed and empty.
    pub(crate) async fn run(self) {
        let mut stream = Medium::new("stream", "append to the stream");
        let mut channel = Medium::new("channel", "publish");
        loop {
            let messages = self.publisher.outbox.take().await;
            if messages.is_empty() {
                return;
            }
            let mut outgoing = Vec::with_capacity(messages.len());
            let (encoded, too_long): (Vec<_>, Vec<_>) =
                pack(messages, &self.unpacks_batches).into_iter().partition(|batch| {
                    let command = batch.outgoing(&self.publisher);
                    let is_encoded = command.is_some();
                    outgoing.extend(command);
                    is_encoded
                });
            let results = self.transport.send(outgoing).await;
            let refused = || Err(TransportError::Refused("too long".to_owned()));
            let too_long = too_long.into_iter().map(|batch| (batch, refused()));
            for (batch, result) in encoded.into_iter().zip(results).chain(too_long) {
                for message in &batch.messages {
                    let medium = match message.outgoing {
                        Outgoing::Append { .. } => &mut stream,
                        Outgoing::Publish { .. } => &mut channel,
                    };
                    self.finish(message, &result, medium);
                }
            }
        }
    }

    /// Handles the result of sending a message.
    fn finish(&self, message: &QueuedMessage, result: &Result<(), TransportError>, medium: &mut Medium) {
        let Err(error) = result else {
            medium.failures.end();
            return medium.published.increment(1);
        };
        medium.failures.note(error);
        metrics::counter!("adapter_publish_failed_total", "medium" => medium.name).increment(1);
        tracing::debug!(%error, medium = medium.name, "a message did not get to Redis");
        if let Some(on_lost) = &message.on_lost {
            on_lost();
        }
        match (&message.request, &message.outgoing) {
            (Some(request), _) => (self.on_lost_request)(request),
            (None, Outgoing::Publish { .. }) => self.publisher.note_lost_message(),
            (None, Outgoing::Append { .. }) => self.publisher.note_lost_broadcast(),
        }
    }
}

impl Medium {
    fn new(name: &'static str, action: &'static str) -> Self {
        let published = metrics::counter!("adapter_published_total", "medium" => name);
        Medium { name, published, failures: FailureLog::of(action) }
    }
}
