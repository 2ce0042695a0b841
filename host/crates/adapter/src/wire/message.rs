//! The messages before they are encoded. The table in [`super`] shows them on the wire.

use rmpv::Value;

use super::options::Options;

/// A message from one server to others.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The uid of the sender: sixteen hex digits, or [`EMITTER_UID`](super::EMITTER_UID). A server ignores its own messages.
    pub uid: String,
    /// The namespace, with its leading slash.
    pub nsp: String,
    /// The content.
    pub body: Body,
}

/// The content of a message, by its type.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// 1: a server started. Sent by 0.2.x only.
    InitialHeartbeat,
    /// 2: a server is alive. Sent by 0.2.x only.
    Heartbeat,
    /// 3: an event for clients, with or without acks.
    Broadcast(Broadcast),
    /// 4: lets sockets join rooms.
    SocketsJoin(RoomsChange),
    /// 5: lets sockets leave rooms.
    SocketsLeave(RoomsChange),
    /// 6: disconnects sockets.
    DisconnectSockets(DisconnectSockets),
    /// 7: asks every server for its sockets.
    FetchSockets(FetchSockets),
    /// 8: a server's sockets.
    FetchSocketsResponse(FetchSocketsResponse),
    /// 9: an event for the servers themselves.
    ServerSideEmit(ServerSideEmit),
    /// 10: a server's ack of such an event.
    ServerSideEmitResponse(Answer),
    /// 11: how many clients of a server got a broadcast with acks.
    BroadcastClientCount(ClientCount),
    /// 12: a client's ack of a broadcast.
    BroadcastAck(Answer),
    /// 13: a server stops. Sent by 0.2.x only.
    AdapterClose,
    /// A type that Node's adapter does not have, and ignores.
    Other(Other),
}

/// An event for clients.
#[derive(Debug, Clone, PartialEq)]
pub struct Broadcast {
    /// The Socket.IO packet.
    pub packet: Packet,
    /// Set if acknowledgements are wanted. The message is then a request by PUB/SUB. Otherwise it is an entry of the stream.
    pub request_id: Option<String>,
    /// The recipients.
    pub opts: Options,
}

/// A Socket.IO packet inside a broadcast. It has no ack id, because each server assigns its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Packet {
    /// The packet's type: 2 (EVENT) even where the data holds binary.
    pub packet_type: u8,
    /// The event's name, then its arguments.
    pub data: Vec<Value>,
}

impl Packet {
    /// Socket.IO's EVENT.
    pub const EVENT: u8 = 2;

    /// An event with its arguments.
    pub fn event(name: &str, args: impl IntoIterator<Item = Value>) -> Self {
        Packet { packet_type: Packet::EVENT, data: std::iter::once(Value::from(name)).chain(args).collect() }
    }
}

/// Lets sockets join or leave rooms.
#[derive(Debug, Clone, PartialEq)]
pub struct RoomsChange {
    /// Which sockets.
    pub opts: Options,
    /// Which rooms.
    pub rooms: Vec<String>,
}

/// Disconnects sockets.
#[derive(Debug, Clone, PartialEq)]
pub struct DisconnectSockets {
    /// Which sockets.
    pub opts: Options,
    /// Whether the underlying connection is closed too, and not only the namespace.
    pub close: bool,
}

/// Asks other servers for their sockets. Each server answers, even one without sockets.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchSockets {
    /// Which sockets.
    pub opts: Options,
    /// Repeated in the answer.
    pub request_id: String,
}

/// The sockets of one server, which is the message's `uid`.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchSocketsResponse {
    /// The id of the request.
    pub request_id: String,
    /// The selected sockets.
    pub sockets: Vec<RemoteSocket>,
}

/// A socket as another server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteSocket {
    /// Its id. Ids of Node have 20 characters and are not a `Sid` of socketioxide.
    pub id: String,
    /// A map `{headers, time, address, xdomain, secure, issued, url, query, auth}`; `time` is text, `issued` is in
    /// milliseconds since 1970. Callers on Node read the keys without checking that they exist.
    pub handshake: Value,
    /// Its rooms, among them its own id.
    pub rooms: Vec<String>,
    /// What the application attached to it. Usually a map.
    pub data: Value,
}

/// An event for the servers themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSideEmit {
    /// Set if every server must acknowledge.
    pub request_id: Option<String>,
    /// The event's name, then its arguments.
    pub packet: Vec<Value>,
}

/// An acknowledgement: of a server for a server-side event, or of a client for a broadcast.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The id of the request.
    pub request_id: String,
    /// The first argument of the acknowledgement; nil if it had none.
    pub packet: Value,
}

/// How many clients of one server got a broadcast with acknowledgements. Every server answers, even with 0.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientCount {
    /// The id of the request.
    pub request_id: String,
    /// At most so many acknowledgements follow from this server.
    pub client_count: u64,
}

/// A message of a type that Node's adapter does not have.
#[derive(Debug, Clone, PartialEq)]
pub struct Other {
    /// The type number, none of 1 to 13.
    pub number: u32,
    /// Its `data`; nil if it has none.
    pub data: Value,
}

impl Body {
    /// The type number on the wire.
    pub fn number(&self) -> u32 {
        match self {
            Body::InitialHeartbeat => 1,
            Body::Heartbeat => 2,
            Body::Broadcast(_) => 3,
            Body::SocketsJoin(_) => 4,
            Body::SocketsLeave(_) => 5,
            Body::DisconnectSockets(_) => 6,
            Body::FetchSockets(_) => 7,
            Body::FetchSocketsResponse(_) => 8,
            Body::ServerSideEmit(_) => 9,
            Body::ServerSideEmitResponse(_) => 10,
            Body::BroadcastClientCount(_) => 11,
            Body::BroadcastAck(_) => 12,
            Body::AdapterClose => 13,
            Body::Other(other) => other.number,
        }
    }

    /// Whether it goes by PUB/SUB. Type 3 without acknowledgements and types 4 to 6 go on the stream.
    pub fn is_ephemeral(&self) -> bool {
        match self {
            Body::Broadcast(broadcast) => broadcast.request_id.is_some(),
            Body::SocketsJoin(_) | Body::SocketsLeave(_) | Body::DisconnectSockets(_) => false,
            _ => true,
        }
    }

    /// The request that this answers, for types 8, 10, 11 and 12.
    pub fn answers(&self) -> Option<&str> {
        match self {
            Body::FetchSocketsResponse(response) => Some(&response.request_id),
            Body::ServerSideEmitResponse(answer) | Body::BroadcastAck(answer) => Some(&answer.request_id),
            Body::BroadcastClientCount(count) => Some(&count.request_id),
            _ => None,
        }
    }
}
