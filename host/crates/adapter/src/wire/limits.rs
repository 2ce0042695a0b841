//! How long anything on the wire may be.

/// How deep the `data` of a message that we write may nest, in levels: more than a client's packet can (128) with all that is put
/// around it. Node's own encoder stops at 100 and reads any depth; what we read may nest about 200 levels by PUB/SUB and 127
/// on the stream.
pub const DEPTH_MAX: usize = 160;

/// The bounds of a decoder and of an encoder. Give a cluster's servers the same: a message that its sender may write
/// must not be too long for its readers.
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
    /// 32 MiB holds the answer of a server with some 30,000 sockets. Applications put names of their own into those of rooms, which
    /// gives them twice the usual 4,096 bytes.
    fn default() -> Self {
        Limits { message_bytes_max: 32 << 20, name_bytes_max: 8192, rooms_max: 100_000, sockets_max: 100_000 }
    }
}
