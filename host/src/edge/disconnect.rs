//! Disconnects clients that read too slowly, and all clients when this replica shuts down.
//!
//! The host ends the connection and not the socket. A client whose socket the server disconnects does not come back. A client whose
//! connection breaks connects again.

use std::time::Duration;

use crate::edge::{socketio::SocketRef, transport::end_transport};

/// Disconnects a client that reads too slowly, once.
pub(crate) fn disconnect_slow_client(socket: &SocketRef) {
    if socket.extensions.insert(SlowClient).is_some() {
        return;
    }
    metrics::counter!("pointwork_slow_consumers_total").increment(1);
    tracing::info!(socket = %socket.id, "a client reads too slowly and is disconnected");
    end(socket);
}

/// Disconnects a client because this replica shuts down. Call it for each of the client's sockets.
pub(crate) fn disconnect_for_shutdown(socket: &SocketRef) {
    socket.extensions.insert(DisconnectedForShutdown);
    end(socket);
}

/// Whether [`disconnect_for_shutdown`] ended the client's connection.
pub(crate) fn was_disconnected_for_shutdown(socket: &SocketRef) -> bool {
    socket.extensions.get::<DisconnectedForShutdown>().is_some()
}

/// Ends the connection of a client that is over a limit, so that it tries again. A CONNECT_ERROR would keep it away for good.
pub(crate) fn end_connection(socket: &SocketRef) {
    end_transport(socket);
}

fn end(socket: &SocketRef) {
    if end_transport(socket) {
        end_polling_session(socket);
    }
}

/// Ends the session of a client that polls. The close needs room in the buffer, which the client's next poll makes. The client does
/// not see the close, or it would not come back: see [`end_transport`].
fn end_polling_session(socket: &SocketRef) {
    let socket = socket.clone();
    tokio::spawn(async move {
        while let Err(socketioxide::SocketError::InternalChannelFull) = socket.clone().disconnect() {
            tokio::time::sleep(DISCONNECT_RETRY).await;
        }
    });
}

const DISCONNECT_RETRY: Duration = Duration::from_millis(50);

/// Marks a socket whose client read too slowly.
#[derive(Clone)]
struct SlowClient;

/// Marks a socket that was disconnected for the shutdown.
#[derive(Clone)]
struct DisconnectedForShutdown;

/// Closes a socket in a task of its own, because the caller may be handling one of the socket's events. If its buffer is full, its
/// connection is ended.
pub(crate) fn close_socket(socket: SocketRef) {
    tokio::spawn(async move {
        if socket.clone().disconnect().is_err() {
            disconnect_slow_client(&socket);
        }
    });
}
