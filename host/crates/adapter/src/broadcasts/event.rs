//! A broadcast as the log keeps it for sockets that follow the stream.

use std::collections::HashSet;

use socketioxide_core::Value as Encoded;

use crate::sockets::LocalNamespace;
use crate::transport::EntryId;
use crate::wire::{Broadcast, Options, Packet, Value};

/// Requests are only for sockets that are connected when they are made, so they are neither kept nor sent again.
const REQUEST: &str = "rpc-request";

/// A broadcast, encoded once for all sockets that get it.
#[derive(Debug)]
pub(crate) struct FollowedEvent {
    /// The number of its namespace.
    pub(crate) namespace: u64,
    /// Its recipients.
    pub(crate) opts: Options,
    /// The event with its arguments and its offset, encoded by the namespace's parser.
    pub(crate) data: Encoded,
}

impl FollowedEvent {
    /// Whether it is for a socket in these rooms. The socket's own id is one of them.
    pub(crate) fn is_for(&self, rooms: &HashSet<&str>) -> bool {
        let among = |names: &[String]| names.iter().any(|name| rooms.contains(name.as_str()));
        (self.opts.rooms.is_empty() || among(&self.opts.rooms)) && !among(&self.opts.except)
    }

    /// The size in bytes.
    pub(crate) fn size(&self) -> usize {
        let data = match &self.data {
            Encoded::Str(text, None) => text.len(),
            Encoded::Str(text, Some(binary)) => text.len() + binary.iter().map(bytes::Bytes::len).sum::<usize>(),
            Encoded::Bytes(bytes) => bytes.len(),
        };
        data + self.opts.rooms.iter().chain(&self.opts.except).map(String::len).sum::<usize>()
    }
}

/// Encodes a broadcast with its offset. `None` if the namespace has no sockets, or the packet is not an event.
pub(crate) fn encode_event(
    namespace: &LocalNamespace,
    broadcast: &mut Broadcast,
    id: EntryId,
) -> Option<FollowedEvent> {
    let offset = Value::from(id.to_string());
    let data = namespace.sockets()?.encode_with(&mut broadcast.packet, offset)?;
    Some(FollowedEvent { namespace: namespace.number, opts: broadcast.opts.clone(), data })
}

/// Whether followers get a broadcast from the stream, with its offset.
pub(crate) fn is_followed(broadcast: &Broadcast) -> bool {
    let Broadcast { packet, request_id, opts } = broadcast;
    let name = packet.data.first().and_then(Value::as_str);
    let is_event = packet.packet_type == Packet::EVENT && name.is_some_and(is_followed_event);
    request_id.is_none() && !opts.flags.volatile() && is_event
}

/// Whether followers get events with this name from the stream.
pub(crate) fn is_followed_event(name: &str) -> bool {
    name != REQUEST
}
