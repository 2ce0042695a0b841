//! Packs messages to the same peer into one message, because a PUBLISH costs Redis and its clients more than its payload.
//!
//! A batch is a message of its own type that holds the others unchanged. Only peers whose heartbeats say that they unpack batches
//! get any.

use std::collections::HashMap;

use rmpv::Value;

use super::publisher::Publisher;
use super::queue::QueuedMessage;
use crate::transport::Outgoing;
use crate::wire::{BATCH, Body, Channels, Limits, Message, Other, REPLICAS_NSP, pubsub};

/// How many messages a batch holds.
const MESSAGES_MAX: usize = 64;
/// How many bytes of messages a batch holds. Larger messages gain nothing from a batch.
const BYTES_MAX: usize = 64 << 10;

/// Messages that are sent to Redis as one, in their order.
#[derive(Default)]
pub(super) struct PeerBatch {
    pub(super) messages: Vec<QueuedMessage>,
    bytes: usize,
}

impl PeerBatch {
    fn has_room(&self, bytes: usize) -> bool {
        self.messages.len() < MESSAGES_MAX && self.bytes + bytes <= BYTES_MAX
    }

    /// The command for Redis. `None` if the batch cannot be encoded, which happens only if the limit of a message is smaller than that
    /// of a batch.
    pub(super) fn outgoing(&self, publisher: &Publisher) -> Option<Outgoing> {
        let [first, others @ ..] = self.messages.as_slice() else { return None };
        let Outgoing::Publish { channel, .. } = &first.outgoing else { return Some(first.outgoing.clone()) };
        if others.is_empty() {
            return Some(first.outgoing.clone());
        }
        let payload = |message: &QueuedMessage| match &message.outgoing {
            Outgoing::Publish { payload, .. } => Some(Value::Binary(payload.to_vec())),
            Outgoing::Append { .. } => None,
        };
        let data = Value::Array(self.messages.iter().filter_map(payload).collect());
        let body = Body::Other(Other { number: BATCH, data });
        let message = Message { uid: publisher.uid.clone(), nsp: REPLICAS_NSP.to_owned(), body };
        let payload = pubsub::encode(&message, &publisher.settings.limits).ok()?;
        Some(Outgoing::Publish { channel: channel.clone(), payload: payload.into() })
    }
}

/// Packs messages to peers that unpack batches. Each server gets its messages in their original order, also relative to messages
/// for all servers.
pub(super) fn pack(messages: Vec<QueuedMessage>, unpacks_batches: impl Fn(&str) -> bool) -> Vec<PeerBatch> {
    let mut packed: Vec<PeerBatch> = Vec::with_capacity(messages.len());
    let mut open: HashMap<String, usize> = HashMap::new();
    for message in messages {
        let mut bytes = 0;
        if let Outgoing::Publish { channel, payload } = &message.outgoing {
            bytes = payload.len();
            if let Some(server) = Channels::server_of(channel).filter(|server| unpacks_batches(server)) {
                if let Some(batch) = open.get(server).and_then(|at| packed.get_mut(*at))
                    && batch.has_room(bytes)
                {
                    batch.bytes += bytes;
                    batch.messages.push(message);
                    continue;
                }
                open.insert(server.to_owned(), packed.len());
            } else {
                open.clear();
            }
        }
        packed.push(PeerBatch { messages: vec![message], bytes });
    }
    packed
}

/// The messages in a batch, in their order. Malformed messages and batches within the batch are counted and skipped.
pub(crate) fn unpack(data: Value, limits: &Limits) -> impl Iterator<Item = Message> {
    let payloads = if let Value::Array(payloads) = data { payloads } else { Vec::new() };
    let is_batch = |message: &Message| matches!(&message.body, Body::Other(other) if other.number == BATCH);
    payloads.into_iter().filter_map(move |payload| {
        let message = payload.as_slice().and_then(|payload| pubsub::decode(payload, limits).ok());
        let message = message.filter(|message| !is_batch(message));
        if message.is_none() {
            metrics::counter!("adapter_malformed_total", "medium" => "channel").increment(1);
        }
        message
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
