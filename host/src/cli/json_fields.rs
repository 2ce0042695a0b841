//! Reads fields of the admin API's JSON answers, where a field of another type counts as empty.

use serde_json::Value;

/// The text, or an empty one.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The elements, or none.
pub(super) fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
