//! One field of the `auth` payload, read from whatever a client sends.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::config::ID_BYTES_MAX;

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
