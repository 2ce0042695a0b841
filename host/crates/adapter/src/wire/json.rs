//! `data` of a stream entry as JSON text, written as `JSON.stringify` writes it.
//!
//! The text equals Node's byte for byte, except for floats below 1e-6 and from 2^53 up, of which the two write other but
//! equal digits, and for half a surrogate pair, which a Rust string cannot hold: it is read as U+FFFD.

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

/// Whether JSON can say all that the value says.
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
            // Writes null for what is not finite, as JavaScript does.
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

/// JavaScript's strings may hold half of a surrogate pair (a text that was cut inside an emoji), and its JSON says so by
/// an escape that is an error everywhere else. Each is replaced by U+FFFD, which is what a browser shows for it.
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

/// The UTF-16 unit of the escape `\uXXXX` at a place in the text.
fn escaped_unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_kept() {
        let read = |text: &str| read(text).unwrap().as_str().unwrap().to_owned();
        assert_eq!(read(r#""a\ud83d""#), "a\u{fffd}");
        assert_eq!(read(r#""\ude00\ud83d\ud83d\ude00\\ud83d""#), "\u{fffd}\u{fffd}😀\\ud83d");
        assert_eq!(read(r#""é\\\ud83dé""#), "é\\\u{fffd}é");
    }

    #[test]
    fn other_errors_stay_errors() {
        for text in [r#""\ud83"#, r#"{"a":"\u"#, "{\"\\", r#"{"a":"\ud83d"#, "{\"a\":\"\\é", ""] {
            assert!(matches!(read(text), Err(DecodeError::Json(_))), "{text}");
        }
    }

    #[test]
    fn numbers_are_written_as_javascript_writes_them() {
        let numbers = [1.0, -0.0, 0.1, 1e20, f64::NAN, 9_007_199_254_740_992.0].map(Value::F64);
        let value = Value::Array(numbers.to_vec());
        let text = write(&super::super::value::written(&value).unwrap()).unwrap();
        assert_eq!(text, "[1,0,0.1,1e+20,null,9007199254740992.0]");
    }
}
