//! The sockets of this server, without the types that socketioxide knows them by.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use rmpv::Value;
use socketioxide_core::Sid;
use socketioxide_core::adapter::{CoreLocalAdapter, SocketEmitter};

use crate::packet;
use crate::select;
use crate::wire::{Options, Packet};

/// The local sockets of a namespace, as messages of other servers address them.
pub(crate) trait Local: Send + Sync {
    /// Delivers an event.
    fn broadcast(&self, packet: Packet, opts: &Options);
    /// Delivers an event and says how many sockets got it, and their acks as they come. Acks that do not come end with the
    /// stream, which ends after `timeout`.
    fn broadcast_with_ack(&self, packet: Packet, opts: &Options, timeout: Option<Duration>) -> (u64, Acks);
    fn join(&self, opts: &Options, rooms: Vec<String>);
    fn leave(&self, opts: &Options, rooms: Vec<String>);
    fn disconnect(&self, opts: &Options);
    /// The sockets with their rooms.
    fn sockets(&self, opts: &Options) -> Vec<(Sid, Vec<String>)>;
}

/// The first arguments of acks.
pub(crate) type Acks = Pin<Box<dyn Stream<Item = Value> + Send>>;

impl<E: SocketEmitter> Local for Arc<CoreLocalAdapter<E>> {
    fn broadcast(&self, packet: Packet, opts: &Options) {
        let Some(packet) = packet::decode(self.parser(), self.path(), packet) else { return };
        if let Err(errors) = CoreLocalAdapter::broadcast(self, packet, select::from_wire(self, opts)) {
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
        let rooms = |sid| self.socket_rooms(sid).into_iter().map(std::borrow::Cow::into_owned).collect();
        sockets.into_iter().map(|socket| (socket.id, rooms(socket.id))).collect()
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
