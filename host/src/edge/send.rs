//! Sends acknowledgements, events and broadcasts to clients, and disconnects clients that read too slowly.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use serde::Serialize;
use socketioxide::{BroadcastError, SendError, SocketError};

use crate::edge::{
    disconnect::disconnect_slow_client,
    socketio::{AckSender, BroadcastOperators, SocketRef},
};

/// Emits `event` to the sockets that `to` selects.
///
/// The first poll delivers to local sockets and passes the broadcast to the adapter. So broadcasts keep their order without waiting.
pub(crate) fn broadcast<T: Serialize + ?Sized>(to: BroadcastOperators, event: &str, data: &T) {
    let emitted = pin!(to.emit(event, data));
    match emitted.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(())) => {}
        // These sockets are closing, or their buffers are full.
        Poll::Ready(Err(BroadcastError::Socket(errors))) => {
            metrics::counter!("pointwork_deliveries_failed_total").increment(errors.len() as u64);
        }
        Poll::Ready(Err(error)) => tracing::warn!(event, %error, "broadcast failed"),
        Poll::Pending => tracing::error!(event, "the adapter did not take a broadcast at once: it is lost"),
    }
}

/// Sends the acknowledgement of an event. Does nothing if the client asked for none.
pub(crate) fn acknowledge(socket: &SocketRef, ack: AckSender, answer: &impl Serialize) {
    if let Err(error) = ack.send(answer) {
        handle_send_error(socket, &error);
    }
}

/// Emits `event` to the socket.
pub(crate) fn emit<T: Serialize + ?Sized>(socket: &SocketRef, event: &str, data: &T) {
    if let Err(error) = socket.emit(event, data) {
        handle_send_error(socket, &error);
    }
}

/// Counts a failed delivery. If the client's buffer is full, the client is disconnected: it must know that it missed something.
pub(crate) fn handle_send_error(socket: &SocketRef, error: &SendError) {
    metrics::counter!("pointwork_deliveries_failed_total").increment(1);
    if matches!(error, SendError::Socket(SocketError::InternalChannelFull)) {
        disconnect_slow_client(socket);
    }
}
