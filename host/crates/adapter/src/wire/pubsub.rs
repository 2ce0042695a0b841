//! Encodes and decodes a message by PUB/SUB: one msgpack map `{type, data, uid, nsp}`.
//!
//! Node writes the keys in this order. The bytes equal those of Node, except for half a surrogate pair.

use rmpv::ValueRef;

use super::error::{DecodeError, EncodeError};
use super::fields::Fields;
use super::limits::Limits;
use super::message::Message;
use super::{compose, msgpack, parse};

/// Encodes a message.
///
/// # Errors
/// If the data nests too deep or is too long.
pub fn encode(message: &Message, limits: &Limits) -> Result<Vec<u8>, EncodeError> {
    let data = compose::data(&message.body)?.map(|data| ("data", data));
    let sender = [("uid", ValueRef::from(message.uid.as_str())), ("nsp", message.nsp.as_str().into())];
    let fields = [("type", message.body.number().into())].into_iter().chain(data).chain(sender);
    let payload = msgpack::write(&compose::map(fields))?;
    match (payload.len(), limits.message_bytes_max) {
        (bytes, max) if bytes > max => Err(EncodeError::TooLong { bytes, max }),
        _ => Ok(payload),
    }
}

/// Decodes a message. A type that Node does not have becomes a [`Body::Other`](super::Body::Other).
///
/// # Errors
/// What is wrong with the message. The reader counts and skips it.
pub fn decode(payload: &[u8], limits: &Limits) -> Result<Message, DecodeError> {
    let (bytes, max) = (payload.len(), limits.message_bytes_max);
    if bytes > max {
        return Err(DecodeError::TooLong { field: "message", bytes, max });
    }
    let mut fields = Fields::of("message", msgpack::read(payload)?, limits)?;
    let number = u32::try_from(fields.count("type")?);
    let number = number.map_err(|_| DecodeError::WrongType { field: "type", expected: "a 32-bit number" })?;
    let (uid, nsp) = (fields.name("uid")?, fields.name("nsp")?);
    Ok(Message { uid, nsp, body: parse::body(number, fields.take("data"), limits)? })
}
