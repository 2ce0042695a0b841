//! Socketioxide's types with this host's adapter, the same for a replica that is alone and for one of a cluster.

use pointwork_core::SocketId;
use socketioxide::{adapter::Emitter, extract, operators, socket::Sid};
use socketioxide_redis_streams::RedisStreamsAdapter;

/// How namespaces share with other replicas.
pub type Adapter = RedisStreamsAdapter<Emitter>;
/// The Socket.IO server.
pub type SocketIo = socketioxide::SocketIo<Adapter>;
/// A client's socket.
pub type SocketRef = extract::SocketRef<Adapter>;
/// How an event is acknowledged.
pub type AckSender = extract::AckSender<Adapter>;
/// To whom a broadcast goes.
pub type BroadcastOperators = operators::BroadcastOperators<Adapter>;

/// How many clients are connected to the root namespace. Socketioxide's own count panics once the server was closed.
pub(crate) fn connected(io: &SocketIo) -> usize {
    io.of("/").map_or(0, |root| root.sockets().len())
}

/// A socket's id as the machines know it.
pub(crate) fn socket_id(sid: Sid) -> SocketId {
    let mut bytes = [0; 16];
    let text = sid.as_str().as_bytes();
    let len = text.len().min(bytes.len());
    bytes[..len].copy_from_slice(&text[..len]);
    SocketId(u128::from_be_bytes(bytes))
}
