//! The root namespace: daemons, apps and CLIs. Who may connect, which rooms they are in, which events they may send.

mod activity;
mod connection;
mod describe;
mod offsets;

use std::{future::ready, sync::Arc};

use pointwork_core::decisions::Departure;
use socketioxide::{
    extract::{Event as Name, TryData},
    handler::ConnectHandler,
    socket::DisconnectReason,
};
use socketioxide_redis_streams::{FOLLOWERS_ROOM, Namespace};

use self::connection::{Connection, Event};
use crate::{
    calls::Calls,
    edge::{
        admission::{LimitReached, UserLimits},
        auth::Verifier,
        departure::departure,
        disconnect::end_connection,
        identity::{Handshake, HandshakeRefusal, identify},
        payload::IncomingEvent,
        socketio::{AckSender, SocketIo, SocketRef},
    },
    telemetry::{EventKind, socket_metrics},
};

/// Mounts the namespace `/`.
///
/// All is set up in the middleware, which runs before CONNECT is sent: a client that sends in the very tick of its
/// CONNECT finds every handler in place. What must not be left behind by a socket that never gets its CONNECT (its
/// entry in the directory, its machine's activity) waits for the connect handler.
pub(crate) fn mount(io: &SocketIo, verifier: Arc<Verifier>, calls: Arc<Calls>, users: UserLimits) {
    let admit = move |socket: SocketRef, TryData(handshake): TryData<Handshake>| {
        let identity = identify(handshake.ok(), |token| verifier.verify_user(token));
        let admitted = identity.and_then(|identity| match users.admit(&identity.user) {
            Ok(place) => Ok((identity, place)),
            Err(LimitReached) => Err(HandshakeRefusal::LimitReached),
        });
        ready(match admitted {
            Ok((identity, place)) => {
                set_up(&socket, Arc::new(Connection::new(identity, calls.clone(), place)));
                Ok(())
            }
            Err(refusal) => {
                if refusal == HandshakeRefusal::LimitReached {
                    // One that counted too long, as a connection that nobody knows yet to be broken does, is gone in a while.
                    end_connection(&socket);
                }
                metrics::counter!("pointwork_handshakes_refused_total", "reason" => refusal.label()).increment(1);
                let reason = std::error::Error::source(&refusal).map(ToString::to_string);
                tracing::debug!(socket = %socket.id, %refusal, reason, "connection refused");
                Err(refusal)
            }
        })
    };
    let connected = |socket: SocketRef| {
        if let Some(connection) = socket.extensions.get::<Arc<Connection>>() {
            connection.open(&socket);
        }
        ready(())
    };
    io.ns("/", connected.with(admit));
}

/// Tells other servers of the cluster who the sockets of the namespace `/` are, when they ask.
pub fn describe_sockets(io: &SocketIo, namespace: &Namespace) {
    let io = io.clone();
    namespace.describe_sockets(move |socket| describe::describe(&io, socket));
}

/// The server is about to be closed, which ends connections without a word to their handlers: each is closed here before.
pub fn leave(io: &SocketIo) {
    for socket in io.of("/").map(|root| root.sockets()).unwrap_or_default() {
        if let Some(connection) = socket.extensions.get::<Arc<Connection>>() {
            connection.close(&socket, Departure::Drained);
        }
    }
}

/// How many calls of this replica's own callers need the socket; see [`Calls::calls_of`].
pub(crate) fn open_calls(socket: &SocketRef, only_in_flight: bool) -> usize {
    let connection = socket.extensions.get::<Arc<Connection>>();
    connection.map_or(0, |connection| connection.open_calls(socket, only_in_flight))
}

/// Whether calls may wait for the socket, were it gone.
pub(crate) fn is_daemon(socket: &SocketRef) -> bool {
    socket.extensions.get::<Arc<Connection>>().is_some_and(|connection| connection.is_daemon(socket))
}

/// Servers of another kind are not to find the socket any more; see [`Calls::hide`].
pub(crate) fn hide(socket: &SocketRef) {
    if let Some(connection) = socket.extensions.get::<Arc<Connection>>() {
        connection.hide(socket);
    }
}

fn set_up(socket: &SocketRef, connection: Arc<Connection>) {
    if connection.is_follower() {
        socket.join(FOLLOWERS_ROOM);
    }
    // The room of its own id is how other servers of the cluster mean this socket alone.
    socket.join(socket.id.to_string());
    socket.join(connection.rooms());
    let taking = connection.clone();
    // One handler for all of them, which is what the socket keeps. It acts in the body of the closure, which the socket's receive
    // task runs in the order of arrival; what the closure returns would be spawned, and spawned futures change places.
    socket.on_fallback(move |socket: SocketRef, Name(name): Name, incoming: IncomingEvent, ack: AckSender| {
        let event = event(&name, incoming, ack);
        socket_metrics().event(event.as_ref().map_or(EventKind::Other, Event::kind));
        match event {
            Some(event) => taking.take(&socket, event),
            None => metrics::counter!("pointwork_events_unknown_total").increment(1),
        }
        ready(())
    });
    let leaving = connection.clone();
    socket.on_disconnect(move |socket: SocketRef, reason: DisconnectReason| {
        leaving.close(&socket, departure(&socket, reason));
        ready(())
    });
    socket.extensions.insert(connection);
}

/// What a client sent; `None` when it is nothing that the host knows.
fn event(name: &str, incoming: IncomingEvent, ack: AckSender) -> Option<Event> {
    Some(match name {
        "rpc-register" => Event::Register(incoming),
        "rpc-unregister" => Event::Unregister(incoming),
        "rpc-call" => Event::Call(incoming, ack),
        "rpc-result" => Event::Result(incoming, ack),
        "rpc-resumed" => Event::Resumed(incoming, ack),
        "ping" => Event::Ping(ack),
        "session-alive" => Event::SessionAlive(incoming),
        "session-end" => Event::SessionEnd(incoming),
        "machine-alive" => Event::MachineAlive(incoming),
        _ => return None,
    })
}
