//! The two media as the targets see them.

use std::fmt::{self, Debug};

use socketioxide_redis_streams::wire::{DecodeError, EncodeError, Limits, Message, pubsub, stream};

/// Between the parts of an input for [`Entry`]. It is in no UTF-8 text, so that any text can be a part.
const SEPARATOR: u8 = 0xff;

/// A message in the form that one medium carries.
pub trait Medium: Debug + PartialEq + Sized {
    /// Writes a message.
    fn encode(message: &Message, limits: &Limits) -> Result<Self, EncodeError>;
    /// Reads a message.
    fn decode(&self, limits: &Limits) -> Result<Message, DecodeError>;
    /// The bytes that [`Limits::message_bytes_max`] bounds and that the memory for reading is in proportion to.
    fn size(&self) -> usize;
    /// Whether the data is JSON, which has no dates and no numbers that are not finite.
    fn is_json(&self) -> bool;
}

/// The payload of a PUB/SUB message.
#[derive(Debug, PartialEq)]
pub struct Payload(pub Vec<u8>);

impl Medium for Payload {
    fn encode(message: &Message, limits: &Limits) -> Result<Self, EncodeError> {
        pubsub::encode(message, limits).map(Payload)
    }

    fn decode(&self, limits: &Limits) -> Result<Message, DecodeError> {
        pubsub::decode(&self.0, limits)
    }

    fn size(&self) -> usize {
        self.0.len()
    }

    fn is_json(&self) -> bool {
        false
    }
}

/// The fields of a stream entry, in any order, repeated or missing.
#[derive(PartialEq)]
pub struct Entry(Vec<(Vec<u8>, Vec<u8>)>);

impl Entry {
    /// Keys and values in turn, with a byte 0xff between. A last key without a value is left out.
    pub fn from_input(input: &[u8]) -> Self {
        let mut parts = input.split(|&byte| byte == SEPARATOR);
        let pair = || Some((parts.next()?.to_vec(), parts.next()?.to_vec()));
        Entry(std::iter::from_fn(pair).collect())
    }

    /// The input that these fields come from.
    pub fn to_input(&self) -> Vec<u8> {
        let parts: Vec<_> = self.0.iter().flat_map(|(key, value)| [&key[..], &value[..]]).collect();
        parts.join(&SEPARATOR)
    }
}

impl Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy;
        f.debug_map().entries(self.0.iter().map(|(key, value)| (text(key), text(value)))).finish()
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Entry {
    fn from(fields: [(&str, &str); N]) -> Self {
        Entry(fields.map(|(key, value)| (key.into(), value.into())).into())
    }
}

impl Medium for Entry {
    fn encode(message: &Message, limits: &Limits) -> Result<Self, EncodeError> {
        let entry = stream::Entry::encode(message, limits)?;
        Ok(Entry(entry.fields().map(|(key, value)| (key.into(), value.as_bytes().into())).collect()))
    }

    fn decode(&self, limits: &Limits) -> Result<Message, DecodeError> {
        stream::Entry::from_fields(self.0.iter().map(|(key, value)| (key, value)), limits)?.decode(limits)
    }

    fn size(&self) -> usize {
        self.data().len()
    }

    fn is_json(&self) -> bool {
        self.data().starts_with(b"{")
    }
}

impl Entry {
    fn data(&self) -> &[u8] {
        self.0.iter().rfind(|(key, _)| key == b"data").map_or(&[], |(_, value)| value)
    }
}
