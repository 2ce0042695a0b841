//! Converts the values in the lines: `{"$bytes": base64}` is binary and `{"$date": ms}` is a date. The rest is JSON.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value as Json, json};
use socketioxide_redis_streams::wire::Value;
use socketioxide_redis_streams::wire::value::{as_date, date};

/// The value as lines show it.
pub(crate) fn to_json(value: &Value) -> Json {
    match value {
        Value::Binary(bytes) => json!({ "$bytes": BASE64_STANDARD.encode(bytes) }),
        Value::Ext(..) => json!({ "$date": as_date(value) }),
        Value::Array(items) => items.iter().map(to_json).collect(),
        Value::Map(pairs) => {
            let pair = |(key, value): &(Value, Value)| (key.as_str().unwrap_or_default().to_owned(), to_json(value));
            Json::Object(pairs.iter().map(pair).collect())
        }
        other => serde_json::to_value(other).unwrap_or(Json::Null),
    }
}

/// The value that a line means.
pub(crate) fn from_json(json: &Json) -> Value {
    match json {
        Json::Object(object) => {
            if let Some(bytes) = object.get("$bytes").and_then(Json::as_str) {
                return Value::Binary(BASE64_STANDARD.decode(bytes).unwrap_or_default());
            }
            if let Some(ms) = object.get("$date").and_then(Json::as_i64) {
                return date(ms);
            }
            Value::Map(object.iter().map(|(key, value)| (key.as_str().into(), from_json(value))).collect())
        }
        Json::Array(items) => Value::Array(items.iter().map(from_json).collect()),
        Json::String(text) => text.as_str().into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, float) => float.unwrap_or_default().into(),
        },
        Json::Bool(bool) => (*bool).into(),
        Json::Null => Value::Nil,
    }
}
