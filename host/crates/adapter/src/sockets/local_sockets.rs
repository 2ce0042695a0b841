//! The sockets of one namespace of this replica, without socketioxide's generic types.

use std::borrow::Cow;
use std::collections::HashSet;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use rmpv::Value;
use socketioxide_core::adapter::{BroadcastOptions, CoreLocalAdapter, SocketEmitter};
use socketioxide_core::{Sid, Value as Encoded};

use super::packet;
use super::recipients::{FOLLOWERS_ROOM, exclude_followers, from_wire};
use crate::wire::{Options, Packet};

/// The local sockets of a namespace, as messages of other servers address them.
pub(crate) trait LocalSockets: Send + Sync {
    /// Delivers an event. Sockets that follow the stream get it only if `to_followers`.
    fn broadcast(&self, packet: Packet, opts: &Options, to_followers: bool);
    /// Delivers an event. Returns how many sockets got it, and the stream of their acknowledgements. The stream ends when all have
    /// acknowledged, or after `timeout`.
    fn broadcast_with_ack(&self, packet: Packet, opts: &Options, timeout: Option<Duration>) -> (u64, Acks);
    fn join(&self, opts: &Options, rooms: Vec<String>);
    fn leave(&self, opts: &Options, rooms: Vec<String>);
    fn disconnect(&self, opts: &Options);
    /// The selected sockets with their rooms.
    fn sockets(&self, opts: &Options) -> Vec<(Sid, Vec<String>)>;
    /// The recipients of an event.
    fn select(&self, opts: &Options) -> Vec<Sid>;
    /// The recipients of an event that are in [`FOLLOWERS_ROOM`].
    fn select_followers(&self, opts: &Options) -> Vec<Sid>;
    /// The rooms of one socket.
    fn rooms(&self, socket: Sid) -> Vec<String>;
    /// Encodes an event with one more argument. `None` if the packet is not an event.
    fn encode_with(&self, packet: &mut Packet, last: Value) -> Option<Encoded>;
    /// Sends an event to one socket. `false` if the socket cannot take it.
    fn send(&self, event: &Encoded, socket: Sid) -> bool;
}

/// The first argument of each acknowledgement.
pub(crate) type Acks = Pin<Box<dyn Stream<Item = Value> + Send>>;

impl<E: SocketEmitter> LocalSockets for Arc<CoreLocalAdapter<E>> {
    fn broadcast(&self, packet: Packet, opts: &Options, to_followers: bool) {
        let Some(packet) = packet::decode(self.parser(), self.path(), packet) else { return };
        let mut selected = from_wire(self, opts);
        if !to_followers {
            exclude_followers(self, &mut selected);
        }
        if let Err(errors) = CoreLocalAdapter::broadcast(self, packet, selected) {
            metrics::counter!("adapter_deliveries_failed_total").increment(errors.len() as u64);
        }
    }

    fn broadcast_with_ack(&self, packet: Packet, opts: &Options, timeout: Option<Duration>) -> (u64, Acks) {
        let Some(packet) = packet::decode(self.parser(), self.path(), packet) else {
            return (0, Box::pin(stream::empty()));
        };
        let (acks, count) = CoreLocalAdapter::broadcast_with_ack(self, packet, from_wire(self, opts), timeout);
        let local = self.clone();
        let first_args = acks
            .filter_map(move |(_, ack)| ready(ack.ok().map(|mut value| packet::first_arg(local.parser(), &mut value))));
        (u64::from(count), Box::pin(first_args))
    }

    fn join(&self, opts: &Options, rooms: Vec<String>) {
        self.add_sockets(from_wire(self, opts), rooms);
    }

    fn leave(&self, opts: &Options, rooms: Vec<String>) {
        self.del_sockets(from_wire(self, opts), rooms);
    }

    fn disconnect(&self, opts: &Options) {
        if let Err(errors) = self.disconnect_socket(from_wire(self, opts)) {
            metrics::counter!("adapter_deliveries_failed_total").increment(errors.len() as u64);
        }
    }

    fn sockets(&self, opts: &Options) -> Vec<(Sid, Vec<String>)> {
        let sockets = self.fetch_sockets(from_wire(self, opts));
        sockets.into_iter().map(|socket| (socket.id, LocalSockets::rooms(self, socket.id))).collect()
    }

    fn select(&self, opts: &Options) -> Vec<Sid> {
        let mut selected = CoreLocalAdapter::sockets(self, from_wire(self, opts));
        // A sender that did not join the room of its own id is excluded too.
        if !opts.except.is_empty() {
            selected.retain(|socket| !opts.except.iter().any(|room| room == socket.as_str()));
        }
        selected
    }

    fn select_followers(&self, opts: &Options) -> Vec<Sid> {
        let mut all = BroadcastOptions::default();
        all.rooms.push(FOLLOWERS_ROOM.into());
        let followers: HashSet<Sid> = CoreLocalAdapter::sockets(self, all).into_iter().collect();
        let mut selected = self.select(opts);
        selected.retain(|socket| followers.contains(socket));
        selected
    }

    fn rooms(&self, socket: Sid) -> Vec<String> {
        self.socket_rooms(socket).into_iter().map(Cow::into_owned).collect()
    }

    fn encode_with(&self, packet: &mut Packet, last: Value) -> Option<Encoded> {
        packet::decode_with(self.parser(), packet, last)
    }

    fn send(&self, event: &Encoded, socket: Sid) -> bool {
        let packet = socketioxide_core::packet::Packet::event(self.path().clone(), event.clone());
        let sent = CoreLocalAdapter::broadcast(self, packet, BroadcastOptions::new(socket));
        metrics::counter!("adapter_deliveries_failed_total").increment(u64::from(sent.is_err()));
        sent.is_ok()
    }
}
