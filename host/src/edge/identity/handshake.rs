//! The `auth` payload of a handshake, read from whatever a client sends.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Capabilities;
use crate::config::ID_BYTES_MAX;

/// The `auth` payload of a CONNECT packet: `{token, clientType, sessionId, machineId, capabilities, lastOffset}`, each of any
/// type. A payload that is no object is one without fields: what is missing then has its own refusal, which says more than a parse error.
#[derive(Clone, Default)]
pub struct Handshake {
    pub(super) token: Field,
    pub(super) client_type: Field,
    pub(super) session_id: Field,
    pub(super) machine_id: Field,
    pub(super) capabilities: Capabilities,
    pub(super) last_offset: Field,
}

// Not derived: it holds the token.
impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake").finish_non_exhaustive()
    }
}

/// One field, as JavaScript would see it.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) enum Field {
    /// Missing, or one of the values that JavaScript takes for false: `null`, `false`, `0`, `""`.
    #[default]
    Absent,
    /// A text that is not empty.
    Text(String),
    /// Anything else.
    Other,
}

impl Field {
    /// The field as a session or machine id.
    pub(super) fn into_id(self) -> Option<Arc<str>> {
        match self {
            Self::Text(id) if id.len() <= ID_BYTES_MAX => Some(id.into()),
            _ => None,
        }
    }

    /// The field as a place in the stream; whatever is there and is no text is one that nobody knows.
    pub(super) fn into_offset(self) -> Option<Box<str>> {
        match self {
            Self::Absent => None,
            Self::Text(offset) if offset.len() <= ID_BYTES_MAX => Some(offset.into()),
            Self::Text(_) | Self::Other => Some("".into()),
        }
    }

    fn truthy(truthy: bool) -> Self {
        if truthy { Self::Other } else { Self::Absent }
    }
}

impl<'de> Deserialize<'de> for Handshake {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HandshakeVisitor)
    }
}

struct HandshakeVisitor;

impl<'de> Visitor<'de> for HandshakeVisitor {
    type Value = Handshake;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the auth payload of a handshake")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Handshake, A::Error> {
        let mut handshake = Handshake::default();
        while let Some(key) = map.next_key::<String>()? {
            let field = match key.as_str() {
                "token" => &mut handshake.token,
                "clientType" => &mut handshake.client_type,
                "sessionId" => &mut handshake.session_id,
                "machineId" => &mut handshake.machine_id,
                "lastOffset" => &mut handshake.last_offset,
                "capabilities" => {
                    handshake.capabilities = map.next_value()?;
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *field = map.next_value()?;
        }
        Ok(handshake)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Handshake, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Handshake::default())
    }

    fn visit_unit<E>(self) -> Result<Handshake, E> {
        Ok(Handshake::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Handshake, E> {
        Ok(Handshake::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Handshake, E> {
        Ok(Handshake::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Handshake, E> {
        Ok(Handshake::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Handshake, E> {
        Ok(Handshake::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Handshake, E> {
        Ok(Handshake::default())
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor)
    }
}

struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field of the auth payload")
    }

    fn visit_str<E>(self, text: &str) -> Result<Field, E> {
        Ok(if text.is_empty() { Field::Absent } else { Field::Text(text.to_owned()) })
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_unit<E>(self) -> Result<Field, E> {
        Ok(Field::Absent)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Field, E> {
        Ok(Field::truthy(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Field, E> {
        Ok(Field::truthy(value != 0))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Field, E> {
        Ok(Field::truthy(value != 0))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Field, E> {
        Ok(Field::truthy(value != 0.0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Field, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Field::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Other)
    }
}
