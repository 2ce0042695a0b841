//! Observes and ends the transport of a socket, which is polling or a WebSocket.

use std::time::Duration;

use axum::extract::ConnectInfo;
use socketioxide::TransportType;

use super::polling_sessions::{PollingSessions, is_websocket_query};
use crate::edge::{connection::ConnectionHandle, socketio::SocketRef};

/// The connection of the socket's WebSocket. `None` for a client that polls, unless its upgrade is under way.
fn connection_of(socket: &SocketRef) -> Option<ConnectionHandle> {
    let request = socket.req_parts();
    if is_websocket_query(request.uri.query().unwrap_or_default()) {
        return request
            .extensions
            .get()
            .map(|ConnectInfo(connection): &ConnectInfo<ConnectionHandle>| connection.clone());
    }
    request.extensions.get::<PollingSessions>()?.websocket(socket.id.as_str())
}

fn is_polling(socket: &SocketRef) -> bool {
    socket.transport_type() == TransportType::Polling
}

/// The time since the client's last byte, packets of the engine included. `None` for a client that polls.
pub(crate) fn silence(socket: &SocketRef) -> Option<Duration> {
    if is_polling(socket) { None } else { connection_of(socket).map(|connection| connection.silence()) }
}

/// Whether the client has not read everything that it was sent, now or at any time since the last call. A client that polls has
/// read everything when its next poll waits.
pub(crate) fn has_unsent_data(socket: &SocketRef) -> bool {
    if is_polling(socket) {
        let sessions = socket.req_parts().extensions.get::<PollingSessions>();
        return sessions.is_some_and(|sessions| !sessions.has_open_poll(socket.id.as_str()));
    }
    connection_of(socket).is_some_and(|connection| connection.take_stalled())
}

/// Ends the connections of a socket, and refuses further requests of its session. True if the client polls: then its session still exists.
pub(crate) fn end_transport(socket: &SocketRef) -> bool {
    let is_polling = is_polling(socket);
    if is_polling && let Some(sessions) = socket.req_parts().extensions.get::<PollingSessions>() {
        // Before the look for a WebSocket, so that an upgrade in between is refused.
        sessions.end(socket.id.as_str());
    }
    if let Some(connection) = connection_of(socket) {
        connection.abort();
    }
    is_polling
}
