//! The errors of encoding and decoding.

use thiserror::Error;

/// Why a message cannot be decoded. The reader counts and skips it. Later messages are not affected.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// A field is missing that the type of the message needs.
    #[error("{field} is missing")]
    Missing {
        /// Its name on the wire.
        field: &'static str,
    },
    /// A field has the wrong type.
    #[error("{field} is not {expected}")]
    WrongType {
        /// Its name on the wire.
        field: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// A field or the whole message is too long.
    #[error("{field} has {bytes} bytes, more than {max}")]
    TooLong {
        /// Its name on the wire.
        field: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The bound, from [`Limits`](super::Limits).
        max: usize,
    },
    /// A list has too many elements.
    #[error("{field} has {count} elements, more than {max}")]
    TooMany {
        /// Its name on the wire.
        field: &'static str,
        /// How many it has.
        count: usize,
        /// The bound, from [`Limits`](super::Limits).
        max: usize,
    },
    /// The `data` of a stream entry starts with `{` but is not JSON.
    #[error("data is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The `data` of a stream entry does not start with `{` and is not base64.
    #[error("data is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The bytes are not msgpack.
    #[error("not msgpack: {0}")]
    Msgpack(#[from] rmpv::decode::Error),
    /// The msgpack value ends before the bytes do.
    #[error("{bytes} bytes after the end of the msgpack value")]
    TrailingBytes {
        /// How many bytes are left.
        bytes: usize,
    },
}

/// Why a message cannot be written.
#[derive(Debug, Error)]
pub enum EncodeError {
    /// The data nests too deep. Node's encoder refuses it too.
    #[error("the data nests deeper than {max} levels")]
    TooDeep {
        /// The bound, [`DEPTH_MAX`](super::DEPTH_MAX).
        max: usize,
    },
    /// The encoded message is too long for its readers.
    #[error("the message has {bytes} bytes, more than {max}")]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The bound, [`Limits::message_bytes_max`](super::Limits::message_bytes_max).
        max: usize,
    },
    /// The JSON writer failed.
    #[error("the data cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The msgpack writer failed.
    #[error("the data cannot be written as msgpack: {0}")]
    Msgpack(#[from] rmpv::encode::Error),
}
