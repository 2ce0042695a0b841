//! The limits of messages on the wire.

/// How many levels the `data` of a written message may nest. A client's packet may nest 128 levels, and this leaves room for what is put
/// around it. Node's encoder stops at 100 levels, and its decoder reads any depth. This crate reads about 200 levels by PUB/SUB and 127
/// on the stream.
pub const DEPTH_MAX: usize = 160;

/// The limits of encoding and decoding. All servers of a cluster must use the same limits, so that no message is too long for its readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A PUB/SUB message, or the `data` of a stream entry, in bytes as they are on the wire.
    pub message_bytes_max: usize,
    /// A uid, a namespace, a request id, a socket id or the name of a room, in bytes.
    pub name_bytes_max: usize,
    /// The rooms in one list.
    pub rooms_max: usize,
    /// The sockets in one FETCH_SOCKETS_RESPONSE.
    pub sockets_max: usize,
}

impl Default for Limits {
    /// A message of 32 MiB holds the answer of a server with about 30,000 sockets. Names may have twice the usual 4,096 bytes, because
    /// applications put their own names into names of rooms.
    fn default() -> Self {
        Limits { message_bytes_max: 32 << 20, name_bytes_max: 8192, rooms_max: 100_000, sockets_max: 100_000 }
    }
}
