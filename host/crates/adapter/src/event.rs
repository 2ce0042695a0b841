//! A broadcast that sockets follow the stream for.

use std::collections::HashSet;

use socketioxide_core::Value as Encoded;

use crate::transport::EntryId;
use crate::wire::{Broadcast, Options, Packet, Value};

/// A request is for whoever is there when it is made: it is neither kept nor replayed.
const REQUEST: &str = "rpc-request";

/// A broadcast as it is kept: encoded once for all who get it.
#[derive(Debug)]
pub(crate) struct Event {
    /// The number of its namespace.
    pub(crate) namespace: u64,
    /// To whom.
    pub(crate) opts: Options,
    /// The event with its arguments and the offset, as the namespace's parser writes it.
    pub(crate) data: Encoded,
}

impl Event {
    /// Whether it is for a socket that is in these rooms, of which its own id is one.
    pub(crate) fn is_for(&self, rooms: &HashSet<&str>) -> bool {
        let among = |names: &[String]| names.iter().any(|name| rooms.contains(name.as_str()));
        (self.opts.rooms.is_empty() || among(&self.opts.rooms)) && !among(&self.opts.except)
    }

    /// In bytes.
    pub(crate) fn size(&self) -> usize {
        let data = match &self.data {
            Encoded::Str(text, None) => text.len(),
            Encoded::Str(text, Some(binary)) => text.len() + binary.iter().map(bytes::Bytes::len).sum::<usize>(),
            Encoded::Bytes(bytes) => bytes.len(),
        };
        data + self.opts.rooms.iter().chain(&self.opts.except).map(String::len).sum::<usize>()
    }
}

/// Whether followers get a broadcast by the stream, with its offset.
pub(crate) fn is_followed(broadcast: &Broadcast) -> bool {
    let Broadcast { packet, request_id, opts } = broadcast;
    let name = packet.data.first().and_then(Value::as_str);
    let is_event = packet.packet_type == Packet::EVENT && name.is_some_and(is_followed_event);
    request_id.is_none() && !opts.flags.volatile() && is_event
}

/// Whether events of this name are.
pub(crate) fn is_followed_event(name: &str) -> bool {
    name != REQUEST
}

/// The offset as clients get it.
pub(crate) fn offset(id: EntryId) -> Value {
    Value::from(id.to_string())
}
