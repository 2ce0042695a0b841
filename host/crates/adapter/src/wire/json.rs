//! Reads and writes the `data` of a stream entry as JSON, as `JSON.stringify` writes it.
//!
//! The text equals Node's byte for byte, with two exceptions. Floats below 1e-6 and from 2^53 up are written with other digits of the
//! same value. Half a surrogate pair is read as U+FFFD, because a Rust string cannot hold it.

use std::borrow::Cow;

use rmpv::{Value, ValueRef};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::error::{DecodeError, EncodeError};
use super::value::{is_timestamp, iso8601};

/// Reads JSON text.
pub(super) fn read(text: &str) -> Result<Value, DecodeError> {
    serde_json::from_str(text).or_else(|error| match without_lone_surrogates(text) {
        Cow::Owned(repaired) => Ok(serde_json::from_str(&repaired)?),
        Cow::Borrowed(_) => Err(error.into()),
    })
}

/// Writes a value that [`is_text`].
pub(super) fn write(value: &ValueRef<'_>) -> Result<String, EncodeError> {
    Ok(serde_json::to_string(&Text(value))?)
}

/// Whether JSON can represent the value.
pub(super) fn is_text(value: &ValueRef<'_>) -> bool {
    match value {
        ValueRef::Binary(_) => false,
        ValueRef::Ext(kind, _) => is_timestamp(*kind),
        ValueRef::Array(items) => items.iter().all(is_text),
        ValueRef::Map(pairs) => pairs.iter().all(|(key, item)| matches!(key, ValueRef::String(_)) && is_text(item)),
        _ => true,
    }
}

struct Text<'a>(&'a ValueRef<'a>);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ValueRef::Boolean(value) => serializer.serialize_bool(*value),
            ValueRef::Integer(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => serializer.serialize_u64(number),
                (None, Some(number)) => serializer.serialize_i64(number),
                (None, None) => serializer.serialize_unit(),
            },
            // Writes null for a number that is not finite, as JavaScript does.
            ValueRef::F64(number) => serializer.serialize_f64(*number),
            ValueRef::F32(number) => serializer.serialize_f64(f64::from(*number)),
            ValueRef::String(text) => serializer.serialize_str(&String::from_utf8_lossy(text.as_bytes())),
            ValueRef::Array(items) => serializer.collect_seq(items.iter().map(Text)),
            ValueRef::Map(pairs) => {
                let mut map = serializer.serialize_map(Some(pairs.len()))?;
                for (key, item) in pairs {
                    map.serialize_entry(&Text(key), &Text(item))?;
                }
                map.end()
            }
            ValueRef::Ext(_, bytes) => iso8601(bytes).serialize(serializer),
            ValueRef::Nil | ValueRef::Binary(_) => serializer.serialize_unit(),
        }
    }
}

/// Replaces each half of a surrogate pair by U+FFFD, as browsers show it. JavaScript strings may hold such a half, for example in a text
/// that was cut inside an emoji. Its JSON then has an escape that other parsers refuse.
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    let mut repaired = Cow::Borrowed(text);
    let mut at = 0;
    while let Some(found) = text[at..].find('\\') {
        at += found;
        at = match (escaped_unit(text, at), escaped_unit(text, at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at + 12,
            (Some(0xd800..=0xdfff), _) => {
                repaired.to_mut().replace_range(at..at + 6, "\\ufffd");
                at + 6
            }
            _ => at + 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    repaired
}

/// The UTF-16 unit of the escape `\uXXXX` at an offset in the text.
fn escaped_unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
