//! Queues the messages that wait to be sent to Redis. The queue is bounded and keeps their order, and senders never wait for it.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::error::OutboxError;
use crate::transport::Outgoing;

/// How many messages are sent to Redis together.
const BATCH_MAX: usize = 256;

/// The queue of messages to Redis.
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
    messages_max: usize,
    bytes_max: usize,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<QueuedMessage>,
    bytes: usize,
    is_closed: bool,
}

/// Is called if a message did not get into the stream.
pub(crate) type OnLost = Box<dyn Fn() + Send>;

/// A message that waits to be sent.
pub(crate) struct QueuedMessage {
    pub(crate) outgoing: Outgoing,
    /// The request that fails if the message cannot be sent.
    pub(crate) request: Option<String>,
    /// Is called if the message did not get into the stream.
    pub(crate) on_lost: Option<OnLost>,
}

impl Outbox {
    pub(crate) fn new(messages_max: usize, bytes_max: usize) -> Self {
        Outbox { queue: Mutex::default(), filled: Notify::new(), messages_max, bytes_max }
    }

    /// Appends a message.
    pub(crate) fn push(&self, message: QueuedMessage) -> Result<(), OutboxError> {
        let bytes = size(&message.outgoing);
        let mut queue = self.queue.lock();
        if queue.is_closed {
            return Err(OutboxError::Closed);
        }
        if queue.messages.len() >= self.messages_max || queue.bytes + bytes > self.bytes_max {
            metrics::counter!("adapter_outbox_full_total").increment(1);
            return Err(OutboxError::Full);
        }
        queue.bytes += bytes;
        queue.messages.push_back(message);
        drop(queue);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for messages and takes the next ones, in order. Empty only if the outbox is closed and everything was taken. Only one task
    /// may call it.
    pub(crate) async fn take(&self) -> Vec<QueuedMessage> {
        loop {
            {
                let mut queue = self.queue.lock();
                let count = queue.messages.len().min(BATCH_MAX);
                let batch: Vec<_> = queue.messages.drain(..count).collect();
                queue.bytes -= batch.iter().map(|message| size(&message.outgoing)).sum::<usize>();
                if !batch.is_empty() || queue.is_closed {
                    return batch;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Refuses further messages. The messages in the queue are still sent.
    pub(crate) fn close(&self) {
        self.queue.lock().is_closed = true;
        self.filled.notify_one();
    }
}

fn size(outgoing: &Outgoing) -> usize {
    match outgoing {
        Outgoing::Append { fields, .. } => fields.iter().map(|(name, value)| name.len() + value.len()).sum(),
        Outgoing::Publish { channel, payload } => channel.len() + payload.len(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
