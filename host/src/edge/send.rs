//! How clients are told: answers, events to one socket, broadcasts to rooms; and what happens when one does not take them.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use serde::Serialize;
use socketioxide::{BroadcastError, SendError, SocketError};

use crate::edge::{
    slow_clients::cut_off,
    socketio::{AckSender, BroadcastOperators, SocketRef},
};

/// Emits `event` to what `to` selects.
///
/// The adapter delivers to local sockets, and takes over what goes further, in the first poll; so a broadcast is made
/// where it stands and two of them never change places.
pub(crate) fn broadcast<T: Serialize + ?Sized>(to: BroadcastOperators, event: &str, data: &T) {
    let emitted = pin!(to.emit(event, data));
    match emitted.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(())) => {}
        // Sockets that are closing, or too slow to take another packet.
        Poll::Ready(Err(BroadcastError::Socket(errors))) => {
            metrics::counter!("pointwork_deliveries_failed_total").increment(errors.len() as u64);
        }
        Poll::Ready(Err(error)) => tracing::warn!(event, %error, "broadcast failed"),
        Poll::Pending => tracing::error!(event, "the adapter did not take a broadcast at once: it is lost"),
    }
}

/// Answers an event that was sent with an acknowledgement; without one there is nobody to tell.
pub(crate) fn acknowledge(socket: &SocketRef, ack: AckSender, answer: &impl Serialize) {
    if let Err(error) = ack.send(answer) {
        undelivered(socket, &error);
    }
}

/// Emits `event` to the socket.
pub(crate) fn tell<T: Serialize + ?Sized>(socket: &SocketRef, event: &str, data: &T) {
    if let Err(error) = socket.emit(event, data) {
        undelivered(socket, &error);
    }
}

/// Something could not be sent. A client that does not read has a full buffer; it must not go on believing that it
/// misses nothing, so it is cut off.
pub(crate) fn undelivered(socket: &SocketRef, error: &SendError) {
    metrics::counter!("pointwork_deliveries_failed_total").increment(1);
    if matches!(error, SendError::Socket(SocketError::InternalChannelFull)) {
        cut_off(socket);
    }
}
