//! A message as an entry of the stream: the text fields `uid`, `nsp`, `type` and `data`.
//!
//! It is read in two steps, so that a reader can pass over its own entries and other namespaces' without reading their data.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use rmpv::{Value, ValueRef};

use super::error::{DecodeError, EncodeError};
use super::limits::Limits;
use super::message::Message;
use super::{compose, json, msgpack, parse};

/// Node writes padding and reads base64 without it as well.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// An entry whose data is not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Who sent it.
    pub uid: String,
    /// The namespace.
    pub nsp: String,
    /// The type number.
    pub number: u32,
    /// JSON, which starts with `{`, or base64 of msgpack.
    pub data: Option<String>,
}

impl Entry {
    /// Writes a message. Its data is JSON where JSON can say it, else base64 of msgpack.
    ///
    /// # Errors
    /// When its data nests too deep or comes out too long.
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

    /// Takes an entry from its fields, as XREAD and XRANGE give them. Others than the four are ignored.
    ///
    /// # Errors
    /// When a field other than `data` is missing, or one is too long or not what it should be.
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

    /// Reads its data. A type that Node does not have becomes a [`Body::Other`](super::Body::Other).
    ///
    /// # Errors
    /// What is wrong with it; it is to be counted and skipped.
    pub fn decode(self, limits: &Limits) -> Result<Message, DecodeError> {
        let data = self.data.as_deref().map_or(Ok(Value::Nil), decode_data)?;
        let body = parse::body(self.number, data, limits)?;
        Ok(Message { uid: self.uid, nsp: self.nsp, body })
    }
}

/// Only a map is written as JSON: a reader takes for base64 what does not start with its brace.
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
