//! Encodes and decodes the messages of `@socket.io/redis-streams-adapter` 0.3.x.
//!
//! A message has a sender (`uid`, sixteen hex digits or `emitter`), a namespace (`nsp`), a numeric type and, for most types, `data`.
//! Messages that must not be lost go on the stream. Requests and their answers go by PUB/SUB ([`Body::is_ephemeral`]).
//!
//! # Media
//! - **Stream** `socket.io` ([`stream`]): an entry with the text fields `uid`, `nsp`, `type` and `data`. `data` is JSON and starts with
//!   `{`. If it holds binary, it is base64 of msgpack. A date in JSON is ISO 8601 text.
//! - **PUB/SUB** ([`pubsub`]): the whole message is one msgpack map. The public channel `socket.io#<nsp>#` reaches every
//!   server, and the private channel `socket.io#<nsp>#<uid>#` reaches one ([`Channels`]). A server handles messages from both alike, so
//!   only that server answers a request on its private channel. Dates are msgpack timestamps, and `undefined` is nil.
//!
//! # Messages
//! | type | message | medium | `data` |
//! |---|---|---|---|
//! | 1 | INITIAL_HEARTBEAT | 0.2.x only | |
//! | 2 | HEARTBEAT | 0.2.x only | |
//! | 3 | [BROADCAST](Broadcast) | stream | `{packet: {type, data}, opts}` |
//! | 3 | BROADCAST with acks | public or private channel | `{packet: {type, data}, requestId, opts}` |
//! | 4 | [SOCKETS_JOIN](RoomsChange) | stream | `{opts, rooms}` |
//! | 5 | SOCKETS_LEAVE | stream | `{opts, rooms}` |
//! | 6 | [DISCONNECT_SOCKETS](DisconnectSockets) | stream | `{opts, close}` |
//! | 7 | [FETCH_SOCKETS](FetchSockets) | public or private channel | `{opts, requestId}` |
//! | 8 | [FETCH_SOCKETS_RESPONSE](FetchSocketsResponse) | private channel of the asker | `{requestId, sockets: [{id, handshake, rooms, data}]}` |
//! | 9 | [SERVER_SIDE_EMIT](ServerSideEmit) | public channel; the emitter's on the stream | `{packet: [name, ...args]}` |
//! | 9 | SERVER_SIDE_EMIT with ack | public or private channel | `{requestId, packet}` |
//! | 10 | [SERVER_SIDE_EMIT_RESPONSE](Answer) | private channel of the asker | `{requestId, packet}`, the first argument of the ack |
//! | 11 | [BROADCAST_CLIENT_COUNT](ClientCount) | private channel of the asker | `{requestId, clientCount}` |
//! | 12 | [BROADCAST_ACK](Answer) | private channel of the asker | `{requestId, packet}`, the first argument of the ack |
//! | 13 | ADAPTER_CLOSE | 0.2.x only | |
//!
//! `opts` is `{rooms, except, flags}` ([`Options`]). Every server answers a broadcast with acks by one type 11, even for 0 clients, and
//! then by one type 12 for each client that acknowledged. If the flag [`UNCOUNTED`] is set, a server of this kind sends type 11 only
//! for 0 clients. Other type numbers are no error: Node ignores them, and they decode to [`Body::Other`].
//!
//! # Robustness
//! Decoding never panics. It bounds every length by [`Limits`], and [`DecodeError`] says what is wrong. Other fields are ignored, as
//! Node ignores them. Decoding takes at most about 160 bytes of memory for each byte of the message (nested arrays of one element; 120
//! for an array of one-byte values).

mod channels;
mod compose;
mod error;
mod fields;
mod json;
mod limits;
mod message;
mod msgpack;
mod options;
mod parse;
pub mod pubsub;
mod replica_messages;
pub mod stream;
pub mod value;

pub use channels::Channels;
pub use error::{DecodeError, EncodeError};
pub use limits::{DEPTH_MAX, Limits};
pub use message::{
    Answer, Body, Broadcast, ClientCount, DisconnectSockets, FetchSockets, FetchSocketsResponse, Message, Other,
    Packet, RemoteSocket, RoomsChange, ServerSideEmit,
};
pub use options::{Flags, Options, TRACEPARENT, UNCOUNTED};
pub use replica_messages::NOTE_MIN;
pub(crate) use replica_messages::{
    BATCH, BROADCASTS_LOST, FAREWELL, HEARTBEAT, INTERRUPTED, NOT_SERVED, REPLICAS_NSP, STATUS_REQUEST, UNANSWERED,
};
pub use rmpv::Value;

/// The stream's default name, Node's `streamName`.
pub const STREAM_NAME: &str = "socket.io";
/// The channels' default prefix, Node's `channelPrefix`.
pub const CHANNEL_PREFIX: &str = "socket.io";
/// Node's default of `MAXLEN ~`, in entries.
pub const NODE_STREAM_LEN_MAX: u64 = 10_000;
/// Our default of `MAXLEN ~`, in entries: a reader that pauses has five times as long before it is trimmed past.
pub const STREAM_LEN_MAX: u64 = 50_000;
/// The sender of everything that the emitter package publishes. It has no channel and expects no answers.
pub const EMITTER_UID: &str = "emitter";
