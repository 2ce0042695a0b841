//! The root namespace: daemons, apps and CLIs. Who may connect, which rooms they are in, which events they may send.

mod activity;
mod connection;
mod gate;

use std::{future::ready, sync::Arc};

use socketioxide::{
    SocketIo,
    extract::{AckSender, SocketRef, TryData},
    handler::ConnectHandler,
    socket::DisconnectReason,
};

use self::connection::{Connection, Event};
use crate::{
    auth::Verifier,
    identity::{Handshake, identify},
    rpc::Rpc,
    wire::Incoming,
};

/// Mounts the namespace `/`.
///
/// All is set up in the middleware, which runs before CONNECT is sent: a client that sends in the very tick of its
/// CONNECT finds every handler in place. What must not be left behind by a socket that never gets its CONNECT (its
/// entry in the directory, its machine's activity) waits for the connect handler.
pub fn mount(io: &SocketIo, verifier: Arc<Verifier>, rpc: Arc<Rpc>) {
    let admit = move |socket: SocketRef, TryData(handshake): TryData<Handshake>| {
        let identity = identify(handshake.ok(), |token| verifier.verify(token));
        ready(match identity {
            Ok(identity) => {
                set_up(&socket, Arc::new(Connection::new(identity, rpc.clone())));
                Ok(())
            }
            Err(refusal) => {
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

fn set_up(socket: &SocketRef, connection: Arc<Connection>) {
    socket.join(connection.rooms());
    on(socket, &connection, "rpc-register", |incoming, _| Event::Register(incoming));
    on(socket, &connection, "rpc-unregister", |incoming, _| Event::Unregister(incoming));
    on(socket, &connection, "rpc-call", Event::Call);
    on(socket, &connection, "ping", |_, ack| Event::Ping(ack));
    on(socket, &connection, "session-alive", |incoming, _| Event::SessionAlive(incoming));
    on(socket, &connection, "session-end", |incoming, _| Event::SessionEnd(incoming));
    on(socket, &connection, "machine-alive", |incoming, _| Event::MachineAlive(incoming));
    let leaving = connection.clone();
    socket.on_disconnect(move |socket: SocketRef, reason: DisconnectReason| {
        leaving.close(&socket, reason);
        ready(())
    });
    socket.extensions.insert(connection);
}

/// Handles `name` in the body of the closure, which the socket's receive task runs in the order of arrival; what the
/// closure returns would be spawned, and spawned futures change places.
fn on(socket: &SocketRef, connection: &Arc<Connection>, name: &'static str, event: fn(Incoming, AckSender) -> Event) {
    let connection = connection.clone();
    socket.on(name, move |socket: SocketRef, incoming: Incoming, ack: AckSender| {
        connection.take(&socket, event(incoming, ack));
        ready(())
    });
}
