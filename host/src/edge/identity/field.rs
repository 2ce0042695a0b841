//! One field of the `auth` payload, read from whatever a client sends.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess};

use super::any_value::{self, FromAnyValue, Scalar};
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

    /// The field as an offset of the stream. A value that is no text gives an offset that no stream has.
    pub(super) fn into_offset(self) -> Option<Box<str>> {
        match self {
            Self::Absent => None,
            Self::Text(offset) if offset.len() <= ID_BYTES_MAX => Some(offset.into()),
            Self::Text(_) | Self::Other => Some("".into()),
        }
    }
}

impl FromAnyValue for Field {
    fn from_scalar(value: Scalar<'_>) -> Self {
        match value {
            Scalar::Text("") | Scalar::Other { is_truthy: false } => Self::Absent,
            Scalar::Text(text) => Self::Text(text.to_owned()),
            Scalar::Other { is_truthy: true } => Self::Other,
        }
    }

    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::Other)
    }

    fn from_object<'de, A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::Other)
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any_value::deserialize(deserializer)
    }
}
