//! Reads and writes msgpack as `@msgpack/msgpack` does: each number has its shortest form.

use rmpv::{Value, ValueRef};

use super::error::{DecodeError, EncodeError};

/// rmpv counts two for each level, so this is about 200 levels: more than is ever written.
const READ_DEPTH_MAX: usize = 400;

/// Reads exactly one value.
pub(super) fn read(mut bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut value = rmpv::decode::read_value_with_max_depth(&mut bytes, READ_DEPTH_MAX)?;
    if !bytes.is_empty() {
        return Err(DecodeError::TrailingBytes { bytes: bytes.len() });
    }
    make_utf8(&mut value);
    Ok(value)
}

/// Writes a value.
pub(super) fn write(value: &ValueRef<'_>) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::with_capacity(256);
    rmpv::encode::write_value_ref(&mut bytes, value)?;
    Ok(bytes)
}

/// Replaces bytes that are not UTF-8 by U+FFFD. Node writes half of a surrogate pair as three such bytes.
fn make_utf8(value: &mut Value) {
    match value {
        Value::String(text) if !text.is_str() => *value = String::from_utf8_lossy(text.as_bytes()).into_owned().into(),
        Value::Array(items) => items.iter_mut().for_each(make_utf8),
        Value::Map(pairs) => pairs.iter_mut().for_each(|(key, item)| {
            make_utf8(key);
            make_utf8(item);
        }),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_after_the_value_are_an_error() {
        assert!(matches!(read(&[0xc0, 0xc0]), Err(DecodeError::TrailingBytes { bytes: 1 })));
    }

    #[test]
    fn a_wrong_length_takes_no_memory() {
        for lie in [[0xdd, 255, 255, 255, 255], [0xc6, 255, 255, 255, 255], [0xdf, 255, 255, 255, 255]] {
            assert!(matches!(read(&lie), Err(DecodeError::Msgpack(_))));
        }
    }

    #[test]
    fn bounds_nesting() {
        let nested = [&[0x91; 1000][..], &[0xc0]].concat();
        assert!(matches!(read(&nested), Err(DecodeError::Msgpack(rmpv::decode::Error::DepthLimitExceeded))));
    }
}
