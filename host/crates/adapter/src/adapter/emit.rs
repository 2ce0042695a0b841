//! Broadcasts an event of this replica: through the stream to other servers and to followers, and directly to other local sockets.

use socketioxide_core::Value as Encoded;
use socketioxide_core::adapter::errors::BroadcastError;
use socketioxide_core::adapter::{BroadcastFlags, BroadcastOptions, CoreLocalAdapter, SocketEmitter};
use socketioxide_core::packet::{Packet, PacketData};
use socketioxide_core::parser::Parse;

use super::RedisStreamsAdapter;
use crate::broadcasts::is_followed_event;
use crate::error::ClusterError;
use crate::outbox::OnLost;
use crate::sockets::{encode, exclude_followers, to_wire};
use crate::wire::{Body, Broadcast, Options};

impl<E: SocketEmitter> RedisStreamsAdapter<E> {
    /// Broadcasts an event to local sockets and to other servers.
    pub(super) fn emit(&self, packet: Packet, mut selected: BroadcastOptions) -> Result<(), BroadcastError> {
        let opts = to_wire(&selected).filter(|_| !selected.is_local(self.local.server_id()));
        let followed = followed_event(&self.local, &packet, &selected);
        // Followers get a followed event through the stream, or at once if it did not get there. A replica that shares no cluster keeps
        // a log in place of the stream.
        let (is_with_followers, published) = match opts {
            None => (false, Ok(())),
            Some(opts) if self.is_alone => (followed.is_some() && self.keep(&packet, opts), Ok(())),
            Some(opts) => {
                let published = self.append(&packet, opts, followed);
                let is_delivered = |data: &Encoded| published.is_ok() || self.deliver_unsent(&selected, data);
                (followed.is_some_and(is_delivered), published)
            }
        };
        if is_with_followers {
            exclude_followers(&self.local, &mut selected);
        }
        let delivered = self.local.broadcast(packet, selected).map_err(BroadcastError::from);
        delivered.and(published.map_err(|error| BroadcastError::Adapter(error.into())))
    }

    /// Appends a broadcast to the stream.
    fn append(&self, packet: &Packet, opts: Options, followed: Option<&Encoded>) -> Result<(), ClusterError> {
        let followed = followed.filter(|_| self.namespace.is_followed());
        let on_lost = followed.map(|data| {
            let deliver = self.namespace.unsent_broadcast(opts.clone(), data.clone());
            Box::new(move || {
                deliver();
            }) as OnLost
        });
        let encoded = encode(self.local.parser(), packet).map_err(ClusterError::from);
        let appended = encoded.and_then(|packet| {
            let body = Body::Broadcast(Broadcast { packet, request_id: None, opts });
            self.namespace.append(body, on_lost)
        });
        appended.inspect_err(|error| super::note_unpublished("stream", error))
    }

    /// Delivers an event to followers that the outbox did not take; `false` if no socket ever followed.
    fn deliver_unsent(&self, selected: &BroadcastOptions, data: &Encoded) -> bool {
        to_wire(selected).is_some_and(|opts| self.namespace.unsent_broadcast(opts, data.clone())())
    }

    /// Keeps a broadcast of a replica that shares no cluster, and delivers it to followers; `false` if it cannot be kept.
    fn keep(&self, packet: &Packet, opts: Options) -> bool {
        if !self.namespace.is_followed() {
            return true;
        }
        let Ok(packet) = encode(self.local.parser(), packet) else { return false };
        self.namespace.keep_broadcast(Broadcast { packet, request_id: None, opts })
    }
}

/// The event of a broadcast that followers get through the stream.
fn followed_event<'a, E: SocketEmitter>(
    local: &CoreLocalAdapter<E>,
    packet: &'a Packet,
    selected: &BroadcastOptions,
) -> Option<&'a Encoded> {
    let (PacketData::Event(data, None) | PacketData::BinaryEvent(data, None)) = &packet.inner else { return None };
    let is_followed =
        !selected.has_flag(BroadcastFlags::Volatile) && local.parser().read_event(data).is_ok_and(is_followed_event);
    is_followed.then_some(data)
}
