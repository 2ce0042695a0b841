//! Encodes and decodes a message as an entry of the stream: the text fields `uid`, `nsp`, `type` and `data`.
//!
//! An entry is decoded in two steps, so that a reader can skip its own entries, and those of other namespaces, without decoding data.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use rmpv::{Value, ValueRef};

use super::error::{DecodeError, EncodeError};
use super::limits::Limits;
use super::message::Message;
use super::{compose, json, msgpack, parse};

/// Node writes padding, and also reads base64 without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// An entry whose data is not decoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The uid of the sender.
    pub uid: String,
    /// The namespace.
    pub nsp: String,
    /// The type number.
    pub number: u32,
    /// JSON, which starts with `{`, or base64 of msgpack.
    pub data: Option<String>,
}

impl Entry {
    /// Encodes a message. Its data is JSON if JSON can represent it, else base64 of msgpack.
    ///
    /// # Errors
    /// If the data nests too deep or is too long.
    pub fn encode(message: &Message, limits: &Limits) -> Result<Self, EncodeError> {
        let data = compose::data(&message.body)?.map(|data| encode_data(&data)).transpose()?;
        match (data.as_ref().map_or(0, String::len), limits.message_bytes_max) {
            (bytes, max) if bytes > max => Err(EncodeError::TooLong { bytes, max }),
            _ => Ok(Entry { uid: message.uid.clone(), nsp: message.nsp.clone(), number: message.body.number(), data }),
        }
    }

    /// The fields in Node's order, as XADD takes them.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Cow<'_, str>)> {
        let head = [("uid", self.uid.as_str().into()), ("nsp", self.nsp.as_str().into())];
        let data = self.data.as_deref().map(|data| ("data", data.into()));
        head.into_iter().chain([("type", self.number.to_string().into())]).chain(data)
    }

    /// Makes an entry of the fields that XREAD and XRANGE return. Other fields than the four are ignored.
    ///
    /// # Errors
    /// If a field other than `data` is missing, or a field is too long or has the wrong type.
    pub fn from_fields<K, V>(fields: impl IntoIterator<Item = (K, V)>, limits: &Limits) -> Result<Self, DecodeError>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let (mut uid, mut nsp, mut kind, mut data) = (None, None, None, None);
        for (key, value) in fields {
            let (value, name_max) = (value.as_ref(), limits.name_bytes_max);
            match key.as_ref() {
                b"uid" => uid = Some(text("uid", value, name_max)?),
                b"nsp" => nsp = Some(text("nsp", value, name_max)?),
                b"type" => kind = Some(text("type", value, name_max)?),
                b"data" => data = Some(text("data", value, limits.message_bytes_max)?),
                _ => {}
            }
        }
        let required = |field, value: Option<&str>| value.map(str::to_owned).ok_or(DecodeError::Missing { field });
        let kind = kind.ok_or(DecodeError::Missing { field: "type" })?;
        let number = kind.parse().map_err(|_| DecodeError::WrongType { field: "type", expected: "a 32-bit number" })?;
        Ok(Entry {
            uid: required("uid", uid.as_deref())?,
            nsp: required("nsp", nsp.as_deref())?,
            number,
            data: data.filter(|data| !data.is_empty()),
        })
    }

    /// Decodes the data. A type that Node does not have becomes a [`Body::Other`](super::Body::Other).
    ///
    /// # Errors
    /// What is wrong with the entry. The reader counts and skips it.
    pub fn decode(self, limits: &Limits) -> Result<Message, DecodeError> {
        let data = self.data.as_deref().map_or(Ok(Value::Nil), decode_data)?;
        let body = parse::body(self.number, data, limits)?;
        Ok(Message { uid: self.uid, nsp: self.nsp, body })
    }
}

/// Only a map is written as JSON, because readers take data that does not start with `{` for base64.
fn encode_data(data: &ValueRef<'_>) -> Result<String, EncodeError> {
    if matches!(data, ValueRef::Map(_)) && json::is_text(data) {
        json::write(data)
    } else {
        Ok(BASE64.encode(msgpack::write(data)?))
    }
}

fn decode_data(data: &str) -> Result<Value, DecodeError> {
    if data.starts_with('{') { json::read(data) } else { msgpack::read(&BASE64.decode(data)?) }
}

fn text(field: &'static str, bytes: &[u8], max: usize) -> Result<String, DecodeError> {
    if bytes.len() > max {
        return Err(DecodeError::TooLong { field, bytes: bytes.len(), max });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| DecodeError::WrongType { field, expected: "UTF-8" })?;
    Ok(text.to_owned())
}
