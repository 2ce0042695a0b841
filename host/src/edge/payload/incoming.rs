//! Reads the events of clients, with any JSON and any binary attachments.

use std::{convert::Infallible, sync::Arc};

use socketioxide::{
    adapter::Adapter,
    extract::TryData,
    handler::{FromMessageParts, Value},
    socket::Socket,
};
pub(crate) use socketioxide_redis_streams::Args;

/// The arguments, if every client's parser accepts them. Otherwise the receiver's parser would close its connection.
///
/// # Errors
/// When there is a placeholder beside real attachments, which only a forged packet has, or too many attachments.
pub(crate) fn check_args(args: Args) -> Result<Args, PayloadError> {
    let count = |is: fn(&rmpv::Value) -> bool| -> usize {
        args.0.iter().map(|arg| sum(arg, |value| usize::from(is(value)))).sum()
    };
    match count(|value| matches!(value, rmpv::Value::Binary(_))) {
        0 => Ok(args),
        attachments if attachments > ATTACHMENTS_MAX => Err(PayloadError::TooManyAttachments),
        _ if count(is_placeholder) > 0 => Err(PayloadError::Malformed),
        _ => Ok(args),
    }
}

fn is_placeholder(value: &rmpv::Value) -> bool {
    value.as_map().is_some_and(|entries| entries.iter().any(|(name, _)| name.as_str() == Some("_placeholder")))
}

/// The sum of `of` over the value and everything in it. The parser limits the depth of a packet to 128.
fn sum(value: &rmpv::Value, of: impl Fn(&rmpv::Value) -> usize + Copy) -> usize {
    let inner = match value {
        rmpv::Value::Array(values) => values.iter().map(|value| sum(value, of)).sum(),
        rmpv::Value::Map(entries) => entries.iter().map(|(name, value)| sum(name, of) + sum(value, of)).sum(),
        _ => 0,
    };
    inner + of(value)
}

/// The bytes of all attachments in a value.
pub(crate) fn attachment_bytes(value: &rmpv::Value) -> usize {
    sum(value, |value| if let rmpv::Value::Binary(bytes) = value { bytes.len() } else { 0 })
}

/// Estimates the memory of a value. A number of one digit takes many times the memory of its text.
pub(crate) fn memory_bytes(value: &rmpv::Value) -> usize {
    let text_bytes = |value: &rmpv::Value| match value {
        rmpv::Value::String(text) => text.as_bytes().len(),
        rmpv::Value::Binary(bytes) => bytes.len(),
        _ => 0,
    };
    sum(value, |value| size_of::<rmpv::Value>() + text_bytes(value))
}

/// The most attachments that the parser of `socket.io-client` accepts in one packet.
const ATTACHMENTS_MAX: usize = 10;

/// Why arguments cannot be used. The sender receives the text. Node would close the connection instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// Nested too deeply, invalid JSON, or with missing attachments.
    #[error("Invalid parameters: malformed or nested too deeply")]
    Malformed,
    /// More attachments than a client accepts in one packet.
    #[error("Invalid parameters: more than 10 binary attachments")]
    TooManyAttachments,
}

/// An event from a client.
pub struct IncomingEvent {
    /// All arguments, if they can be used.
    pub args: Result<Args, PayloadError>,
    /// Size of the packet's text, without binary attachments.
    pub bytes: u32,
}

impl IncomingEvent {
    /// The first argument, if it could be read and there is one.
    #[must_use]
    pub fn into_first(self) -> Option<rmpv::Value> {
        self.args.ok()?.into_first()
    }
}

impl<A: Adapter> FromMessageParts<A> for IncomingEvent {
    type Error = Infallible;

    fn from_message_parts(
        socket: &Arc<Socket<A>>,
        value: &mut Value,
        ack_id: &Option<i64>,
    ) -> Result<Self, Infallible> {
        let bytes = value.as_str().map_or(0, |text| text.len());
        let TryData(args) = TryData::<Args>::from_message_parts(socket, value, ack_id)?;
        let args = args.map_err(|_| PayloadError::Malformed).and_then(check_args);
        Ok(Self { args, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) })
    }
}

/// Removes the value of `key` from a map: the last one, like JavaScript. `None` if `value` is no map or has no such key.
pub(crate) fn take_field(value: &mut rmpv::Value, key: &str) -> Option<rmpv::Value> {
    let rmpv::Value::Map(entries) = value else { return None };
    let at = entries.iter().rposition(|(name, _)| name.as_str() == Some(key))?;
    Some(entries.remove(at).1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn args(json: serde_json::Value) -> Args {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn rejects_a_placeholder_beside_an_attachment() {
        let stand_in = args(serde_json::json!([{"a": [{"_placeholder": true, "num": 99}]}]));
        assert!(check_args(stand_in.clone()).is_ok(), "without attachments it is an object like any other");
        let attachment = Args(vec!["text".into(), rmpv::Value::Array(vec![rmpv::Value::Binary(vec![1])])]);
        assert!(check_args(attachment.clone()).is_ok());
        assert_eq!(check_args(Args([stand_in.0, attachment.0].concat())), Err(PayloadError::Malformed));
    }

    #[test]
    fn limits_the_attachments() {
        let attachments = |count| Args(vec![rmpv::Value::Array(vec![rmpv::Value::Binary(vec![1]); count])]);
        assert!(check_args(attachments(ATTACHMENTS_MAX)).is_ok());
        assert_eq!(check_args(attachments(ATTACHMENTS_MAX + 1)), Err(PayloadError::TooManyAttachments));
    }

    #[test]
    fn estimates_the_memory_of_every_value() {
        let value = size_of::<rmpv::Value>();
        assert_eq!(memory_bytes(&rmpv::Value::Nil), value);
        assert_eq!(memory_bytes(&args(serde_json::json!([[0, "abc"]])).0[0]), 3 * value + 3);
        assert_eq!(memory_bytes(&args(serde_json::json!([{"k": [1]}])).0[0]), 4 * value + 1);
    }

    #[test]
    fn takes_the_last_value_of_a_key() {
        let mut body = args(serde_json::json!([{"method": "m", "params": 1}])).into_first().unwrap();
        assert_eq!(take_field(&mut body, "method"), Some("m".into()));
        assert_eq!(take_field(&mut body, "method"), None);
        assert_eq!(take_field(&mut rmpv::Value::Nil, "method"), None);
        let mut twice = rmpv::Value::Map(vec![("a".into(), 1.into()), ("a".into(), 2.into())]);
        assert_eq!(take_field(&mut twice, "a"), Some(2.into()));
    }
}
