//! A broadcast that is made here, by the ways that it takes.

use socketioxide_core::Value as Encoded;
use socketioxide_core::adapter::errors::BroadcastError;
use socketioxide_core::adapter::{BroadcastFlags, BroadcastOptions, CoreLocalAdapter, SocketEmitter};
use socketioxide_core::packet::{Packet, PacketData};
use socketioxide_core::parser::Parse;

use crate::adapter::{RedisStreamsAdapter, untold};
use crate::error::ClusterError;
use crate::event::is_followed_event;
use crate::packet;
use crate::select::{spare_followers, to_wire};
use crate::wire::{Body, Broadcast, Options};

impl<E: SocketEmitter> RedisStreamsAdapter<E> {
    /// Broadcasts an event to the local sockets and to other servers.
    pub(crate) fn emit(&self, packet: Packet, mut selected: BroadcastOptions) -> Result<(), BroadcastError> {
        let opts = to_wire(&selected).filter(|_| !selected.is_local(self.local.server_id()));
        let followed = followed(&self.local, &packet, &selected);
        // Who follows gets it by the stream; by what takes its place for a replica that is alone; or now, if it did not get there.
        let (is_spared, published) = match opts {
            None => (false, Ok(())),
            Some(opts) if self.is_alone => (followed.is_some() && self.keep(&packet, opts), Ok(())),
            Some(opts) => {
                let published = self.append(&packet, opts, followed);
                let is_with_followers = |data| published.is_ok() || self.undelivered(&selected, data);
                (followed.is_some_and(is_with_followers), published)
            }
        };
        if is_spared {
            spare_followers(&self.local, &mut selected);
        }
        let delivered = self.local.broadcast(packet, selected).map_err(BroadcastError::from);
        delivered.and(published.map_err(|error| BroadcastError::Adapter(error.into())))
    }

    /// Appends a broadcast to the stream.
    fn append(&self, packet: &Packet, opts: Options, followed: Option<&Encoded>) -> Result<(), ClusterError> {
        let unsent = followed.and_then(|data| self.namespace.unsent(&opts, data));
        let encoded = packet::encode(self.local.parser(), packet).map_err(ClusterError::from);
        let appended = encoded.and_then(|packet| {
            let body = Body::Broadcast(Broadcast { packet, request_id: None, opts });
            self.namespace.append(body, unsent)
        });
        appended.inspect_err(|error| untold("stream", error))
    }

    /// Delivers to followers what was not taken for the stream; `false` if nobody ever followed.
    fn undelivered(&self, selected: &BroadcastOptions, data: &Encoded) -> bool {
        to_wire(selected).is_some_and(|opts| self.namespace.undelivered(opts, data.clone()))
    }

    /// Keeps a broadcast of a replica that is alone for those who follow, and delivers it to them; `false` if it cannot be kept.
    fn keep(&self, packet: &Packet, opts: Options) -> bool {
        let Some(inner) = self.namespace.inner() else { return false };
        if !inner.tail.has_begun() {
            return true;
        }
        let Ok(packet) = packet::encode(self.local.parser(), packet) else { return false };
        let mut broadcast = Broadcast { packet, request_id: None, opts };
        inner.tail.make(&self.namespace, |id| self.namespace.event(&mut broadcast, id))
    }
}

/// The event of a broadcast that followers get by the stream.
fn followed<'a, E: SocketEmitter>(
    local: &CoreLocalAdapter<E>,
    packet: &'a Packet,
    selected: &BroadcastOptions,
) -> Option<&'a Encoded> {
    let (PacketData::Event(data, None) | PacketData::BinaryEvent(data, None)) = &packet.inner else { return None };
    let is_followed =
        !selected.has_flag(BroadcastFlags::Volatile) && local.parser().read_event(data).is_ok_and(is_followed_event);
    is_followed.then_some(data)
}
