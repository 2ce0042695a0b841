//! The sockets of this server, without the types that socketioxide knows them by.

use std::borrow::Cow;
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use rmpv::Value;
use socketioxide_core::adapter::{BroadcastOptions, CoreLocalAdapter, SocketEmitter};
use socketioxide_core::{Sid, Value as Encoded};

use crate::follow::FOLLOWERS_ROOM;
use crate::packet;
use crate::select;
use crate::wire::{Options, Packet};

/// The local sockets of a namespace, as messages of other servers address them.
pub(crate) trait Local: Send + Sync {
    /// Delivers an event, to sockets that follow the stream if `to_followers`.
    fn broadcast(&self, packet: Packet, opts: &Options, to_followers: bool);
    /// Delivers an event and says how many sockets got it, and their acks as they come. Acks that do not come end with the
    /// stream, which ends after `timeout`.
    fn broadcast_with_ack(&self, packet: Packet, opts: &Options, timeout: Option<Duration>) -> (u64, Acks);
    fn join(&self, opts: &Options, rooms: Vec<String>);
    fn leave(&self, opts: &Options, rooms: Vec<String>);
    fn disconnect(&self, opts: &Options);
    /// The sockets with their rooms.
    fn sockets(&self, opts: &Options) -> Vec<(Sid, Vec<String>)>;
    /// Whom an event is for.
    fn select(&self, opts: &Options) -> Vec<Sid>;
    /// Those of them that follow the stream, or will.
    fn select_followers(&self, opts: &Options) -> Vec<Sid>;
    /// The rooms of one.
    fn rooms(&self, socket: Sid) -> Vec<String>;
    /// An event with one argument more, as it is sent; `None` when it is none.
    fn encode_with(&self, packet: &mut Packet, last: Value) -> Option<Encoded>;
    /// Sends an event to one socket; `false` if it cannot take it.
    fn send(&self, event: &Encoded, socket: Sid) -> bool;
}

/// The first arguments of acks.
pub(crate) type Acks = Pin<Box<dyn Stream<Item = Value> + Send>>;

impl<E: SocketEmitter> Local for Arc<CoreLocalAdapter<E>> {
    fn broadcast(&self, packet: Packet, opts: &Options, to_followers: bool) {
        let Some(packet) = packet::decode(self.parser(), self.path(), packet) else { return };
        let mut selected = select::from_wire(self, opts);
        if !to_followers {
            select::spare_followers(self, &mut selected);
        }
        if let Err(errors) = CoreLocalAdapter::broadcast(self, packet, selected) {
            metrics::counter!("adapter_deliveries_failed_total").increment(errors.len() as u64);
        }
    }

    fn broadcast_with_ack(&self, packet: Packet, opts: &Options, timeout: Option<Duration>) -> (u64, Acks) {
        let Some(packet) = packet::decode(self.parser(), self.path(), packet) else {
            return (0, Box::pin(FirstArgs::<E> { local: self.clone(), acks: None }));
        };
        let selected = select::from_wire(self, opts);
        let (acks, count) = CoreLocalAdapter::broadcast_with_ack(self, packet, selected, timeout);
        (u64::from(count), Box::pin(FirstArgs { local: self.clone(), acks: Some(Box::pin(acks)) }))
    }

    fn join(&self, opts: &Options, rooms: Vec<String>) {
        self.add_sockets(select::from_wire(self, opts), rooms);
    }

    fn leave(&self, opts: &Options, rooms: Vec<String>) {
        self.del_sockets(select::from_wire(self, opts), rooms);
    }

    fn disconnect(&self, opts: &Options) {
        if let Err(errors) = self.disconnect_socket(select::from_wire(self, opts)) {
            metrics::counter!("adapter_deliveries_failed_total").increment(errors.len() as u64);
        }
    }

    fn sockets(&self, opts: &Options) -> Vec<(Sid, Vec<String>)> {
        let sockets = self.fetch_sockets(select::from_wire(self, opts));
        sockets.into_iter().map(|socket| (socket.id, Local::rooms(self, socket.id))).collect()
    }

    fn select(&self, opts: &Options) -> Vec<Sid> {
        let mut selected = CoreLocalAdapter::sockets(self, select::from_wire(self, opts));
        // Also one that did not join the room of its own id, when it is the sender.
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

/// The acks of local sockets, each as its first argument; those that failed are left out.
struct FirstArgs<E: SocketEmitter> {
    local: Arc<CoreLocalAdapter<E>>,
    acks: Option<Pin<Box<E::AckStream>>>,
}

impl<E: SocketEmitter> Stream for FirstArgs<E> {
    type Item = Value;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Value>> {
        loop {
            let Some(acks) = &mut self.acks else { return Poll::Ready(None) };
            match acks.as_mut().poll_next(cx) {
                Poll::Ready(Some((_, Ok(mut value)))) => {
                    return Poll::Ready(Some(packet::first_arg(self.local.parser(), &mut value)));
                }
                Poll::Ready(Some((_, Err(_)))) => {}
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

// The local sockets are reached by a handle that is never pinned, and the acks are pinned on their own.
impl<E: SocketEmitter> Unpin for FirstArgs<E> {}
