//! What [`Limits`] says of a message.

use socketioxide_redis_streams::wire::{Body, Limits, Message, Options, Value};

/// What is read may nest about 127 levels.
const READ_DEPTH_MAX: usize = 201;

/// Asserts that a message keeps the limits that it was read with.
pub(crate) fn assert_within(message: &Message, limits: &Limits) {
    let name = |name: &str| assert!(name.len() <= limits.name_bytes_max, "{name} of {message:?}");
    let rooms = |rooms: &[String]| {
        assert!(rooms.len() <= limits.rooms_max, "{message:?}");
        rooms.iter().for_each(|room| name(room));
    };
    name(&message.uid);
    name(&message.nsp);
    message.body.answers().into_iter().for_each(name);
    if let Some(opts) = opts(&message.body) {
        rooms(&opts.rooms);
        rooms(&opts.except);
    }
    match &message.body {
        Body::Broadcast(broadcast) => broadcast.request_id.iter().for_each(|id| name(id)),
        Body::SocketsJoin(change) | Body::SocketsLeave(change) => rooms(&change.rooms),
        Body::FetchSockets(fetch) => name(&fetch.request_id),
        Body::ServerSideEmit(emit) => emit.request_id.iter().for_each(|id| name(id)),
        Body::FetchSocketsResponse(response) => {
            assert!(response.sockets.len() <= limits.sockets_max, "{message:?}");
            for socket in &response.sockets {
                name(&socket.id);
                rooms(&socket.rooms);
            }
        }
        _ => {}
    }
    assert!(depth(message) <= READ_DEPTH_MAX, "{message:?}");
}

/// How deep a message's deepest value nests, in levels.
pub(crate) fn depth(message: &Message) -> usize {
    let flags = opts(&message.body).into_iter().flat_map(|opts| opts.flags.iter()).flat_map(|(key, flag)| [key, flag]);
    values(&message.body).into_iter().chain(flags).map(depth_of).max().unwrap_or(0)
}

fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Map(pairs) => 1 + pairs.iter().flat_map(|(key, item)| [key, item]).map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}

/// To whom a message is, where it says so.
pub(crate) fn opts(body: &Body) -> Option<&Options> {
    match body {
        Body::Broadcast(broadcast) => Some(&broadcast.opts),
        Body::SocketsJoin(change) | Body::SocketsLeave(change) => Some(&change.opts),
        Body::DisconnectSockets(disconnect) => Some(&disconnect.opts),
        Body::FetchSockets(fetch) => Some(&fetch.opts),
        _ => None,
    }
}

/// The values that the application chose, without the flags.
fn values(body: &Body) -> Vec<&Value> {
    match body {
        Body::Broadcast(broadcast) => broadcast.packet.data.iter().collect(),
        Body::FetchSocketsResponse(response) => {
            response.sockets.iter().flat_map(|socket| [&socket.handshake, &socket.data]).collect()
        }
        Body::ServerSideEmit(emit) => emit.packet.iter().collect(),
        Body::ServerSideEmitResponse(answer) | Body::BroadcastAck(answer) => vec![&answer.packet],
        Body::Other(other) => vec![&other.data],
        _ => Vec::new(),
    }
}
