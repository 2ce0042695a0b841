//! What waits to be sent to Redis. Bounded, in order, and never waited for: whoever publishes goes on at once.

use std::collections::VecDeque;
use std::sync::Mutex;

use thiserror::Error;
use tokio::sync::Notify;

use crate::lock::lock;
use crate::replay::Unsent;
use crate::transport::Outgoing;

/// How many messages go to Redis together.
const BATCH_MAX: usize = 256;

/// The outbox.
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
    messages_max: usize,
    bytes_max: usize,
}

#[derive(Default)]
struct Queue {
    letters: VecDeque<Letter>,
    bytes: usize,
    is_closed: bool,
}

/// A message on its way.
pub(crate) struct Letter {
    pub(crate) outgoing: Outgoing,
    /// The request that fails if this cannot be sent.
    pub(crate) request: Option<String>,
    /// The broadcast that followers here get at once if this does not get into the stream.
    pub(crate) unsent: Option<Box<Unsent>>,
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum OutboxError {
    /// Redis takes messages more slowly than they are published.
    #[error("too much waits to be sent to Redis")]
    Full,
    /// The replica left the cluster.
    #[error("the cluster was left")]
    Closed,
}

impl Outbox {
    pub(crate) fn new(messages_max: usize, bytes_max: usize) -> Self {
        Outbox { queue: Mutex::default(), filled: Notify::new(), messages_max, bytes_max }
    }

    /// Puts a message behind all others.
    pub(crate) fn push(&self, letter: Letter) -> Result<(), OutboxError> {
        let bytes = size(&letter.outgoing);
        let mut queue = lock(&self.queue);
        if queue.is_closed {
            return Err(OutboxError::Closed);
        }
        if queue.letters.len() >= self.messages_max || queue.bytes + bytes > self.bytes_max {
            metrics::counter!("adapter_outbox_full_total").increment(1);
            return Err(OutboxError::Full);
        }
        queue.bytes += bytes;
        queue.letters.push_back(letter);
        drop(queue);
        self.filled.notify_one();
        Ok(())
    }

    /// The next messages, in order; none when it was closed and is empty. One task alone calls it.
    pub(crate) async fn take(&self) -> Vec<Letter> {
        loop {
            {
                let mut queue = lock(&self.queue);
                let count = queue.letters.len().min(BATCH_MAX);
                let batch: Vec<_> = queue.letters.drain(..count).collect();
                queue.bytes -= batch.iter().map(|letter| size(&letter.outgoing)).sum::<usize>();
                if !batch.is_empty() || queue.is_closed {
                    return batch;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Takes nothing more; what is in it is still sent.
    pub(crate) fn close(&self) {
        lock(&self.queue).is_closed = true;
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
mod tests {
    use super::*;

    fn letter(payload: &'static str) -> Letter {
        let outgoing = Outgoing::Publish { channel: "c".into(), payload: payload.into() };
        Letter { outgoing, request: None, unsent: None }
    }

    async fn taken(outbox: &Outbox) -> usize {
        outbox.take().await.len()
    }

    #[tokio::test]
    async fn it_holds_so_many_messages_and_so_many_bytes() {
        let outbox = Outbox::new(2, 10);
        assert_eq!(outbox.push(letter("12345")), Ok(()));
        assert_eq!(outbox.push(letter("1234")), Err(OutboxError::Full));
        assert_eq!(outbox.push(letter("1")), Ok(()));
        assert_eq!(outbox.push(letter("")), Err(OutboxError::Full));
        assert_eq!(taken(&outbox).await, 2);
        assert_eq!(outbox.push(letter("123456789")), Ok(()), "what was taken counts no more");
    }

    #[tokio::test]
    async fn what_is_in_it_when_it_closes_is_sent() {
        let outbox = Outbox::new(1_000, 1_000);
        (0..BATCH_MAX + 1).for_each(|_| outbox.push(letter("")).unwrap());
        outbox.close();
        assert_eq!(outbox.push(letter("")), Err(OutboxError::Closed));
        assert_eq!((taken(&outbox).await, taken(&outbox).await, taken(&outbox).await), (BATCH_MAX, 1, 0));
    }
}
