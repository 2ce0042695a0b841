//! What clients send and get, as serde types that pass any JSON and any binary through unchanged.

use std::{borrow::Cow, convert::Infallible, sync::Arc};

use serde::{Serialize, Serializer};
use socketioxide::{
    adapter::Adapter,
    extract::TryData,
    handler::{FromMessageParts, Value},
    socket::Socket,
};
pub(crate) use socketioxide_redis_streams::Args;
use socketioxide_redis_streams::wire::Packet;

/// The arguments, unless no client's parser would take them.
///
/// # Errors
/// When they hold a stand-in for an attachment beside real attachments, which no honest client sends, or more attachments
/// than a client takes: whoever they were passed on to would be cut off by its own parser.
pub(crate) fn fit(args: Args) -> Result<Args, Unfit> {
    let count = |is: fn(&rmpv::Value) -> bool| args.0.iter().map(|arg| count(arg, is)).sum::<usize>();
    match count(|value| matches!(value, rmpv::Value::Binary(_))) {
        0 => Ok(args),
        attachments if attachments > ATTACHMENTS_MAX => Err(Unfit::TooManyAttachments),
        _ if count(is_placeholder) > 0 => Err(Unfit::Malformed),
        _ => Ok(args),
    }
}

fn is_placeholder(value: &rmpv::Value) -> bool {
    value.as_map().is_some_and(|entries| entries.iter().any(|(name, _)| name.as_str() == Some("_placeholder")))
}

/// How many values `is` holds for, in the value and all that is in it. As deep as the parser lets a packet be, 128.
fn count(value: &rmpv::Value, is: fn(&rmpv::Value) -> bool) -> usize {
    let inner = match value {
        rmpv::Value::Array(values) => values.iter().map(|value| count(value, is)).sum(),
        rmpv::Value::Map(entries) => entries.iter().map(|(_, value)| count(value, is)).sum(),
        _ => 0,
    };
    inner + usize::from(is(value))
}

/// The bytes of all attachments in a value.
pub(crate) fn attachment_bytes(value: &rmpv::Value) -> usize {
    match value {
        rmpv::Value::Binary(bytes) => bytes.len(),
        rmpv::Value::Array(values) => values.iter().map(attachment_bytes).sum(),
        rmpv::Value::Map(entries) => entries.iter().map(|(_, value)| attachment_bytes(value)).sum(),
        _ => 0,
    }
}

/// About how much memory the value takes: a number of one digit takes many times its text.
pub(crate) fn memory_bytes(value: &rmpv::Value) -> usize {
    let inner = match value {
        rmpv::Value::String(text) => text.as_bytes().len(),
        rmpv::Value::Binary(bytes) => bytes.len(),
        rmpv::Value::Array(values) => values.iter().map(memory_bytes).sum(),
        rmpv::Value::Map(entries) => entries.iter().map(|(name, value)| memory_bytes(name) + memory_bytes(value)).sum(),
        _ => 0,
    };
    inner + size_of::<rmpv::Value>()
}

/// What the parser of `socket.io-client` takes in one packet.
const ATTACHMENTS_MAX: usize = 10;

/// Why arguments cannot be used, as the sender is told. Not in the seed's table: Node would have closed the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Nested too deeply, no valid JSON, or with attachments that are not there.
    #[error("Invalid parameters: malformed or nested too deeply")]
    Malformed,
    /// More than a client takes in one packet.
    #[error("Invalid parameters: more than 10 binary attachments")]
    TooManyAttachments,
}

/// An event as it came in.
pub struct Incoming {
    /// All arguments, if they are of use.
    pub args: Result<Args, Unfit>,
    /// Size of the packet's text, without binary attachments.
    pub bytes: u32,
}

impl Incoming {
    /// The first argument, if it could be read and there is one.
    #[must_use]
    pub fn into_first(self) -> Option<rmpv::Value> {
        self.args.ok()?.into_first()
    }
}

impl<A: Adapter> FromMessageParts<A> for Incoming {
    type Error = Infallible;

    fn from_message_parts(
        socket: &Arc<Socket<A>>,
        value: &mut Value,
        ack_id: &Option<i64>,
    ) -> Result<Self, Infallible> {
        let bytes = value.as_str().map_or(0, |text| text.len());
        let TryData(args) = TryData::<Args>::from_message_parts(socket, value, ack_id)?;
        let args = args.map_err(|_| Unfit::Malformed).and_then(fit);
        Ok(Self { args, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) })
    }
}

/// Takes the value of `key` out of a map, the last one as in JavaScript; `None` when `value` is no map or has no such key.
pub(crate) fn take(value: &mut rmpv::Value, key: &str) -> Option<rmpv::Value> {
    let rmpv::Value::Map(entries) = value else { return None };
    let at = entries.iter().rposition(|(name, _)| name.as_str() == Some(key))?;
    Some(entries.remove(at).1)
}

/// The answer to an `rpc-call`.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "bare")]
    result: Option<rmpv::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'static, str>>,
}

impl Answer {
    /// `{ok: true, result}`; no `result` when the daemon acknowledged without one.
    #[must_use]
    pub(crate) fn result(result: Option<rmpv::Value>) -> Self {
        Self { ok: true, result, error: None }
    }

    /// `{ok: true}`.
    #[must_use]
    pub(crate) fn done() -> Self {
        Self::result(None)
    }

    /// `{ok: false, error}`.
    #[must_use]
    pub(crate) fn error(error: impl Into<Cow<'static, str>>) -> Self {
        Self { ok: false, result: None, error: Some(error.into()) }
    }
}

/// The event that brings a request to a daemon.
pub(crate) const RPC_REQUEST: &str = "rpc-request";

/// What a daemon gets with [`RPC_REQUEST`].
#[derive(Debug, Serialize)]
pub(crate) struct RpcRequest<'a> {
    /// The method as the caller wrote it.
    pub method: &'a str,
    /// As the caller sent them; absent when it sent none.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "bare")]
    pub params: Option<rmpv::Value>,
    /// For a daemon that may hand its result in later: what it then names the call by.
    #[serde(rename = "callId", skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

impl RpcRequest<'_> {
    /// The same for a daemon of another replica, as the cluster's wire carries it.
    pub(crate) fn into_packet(self) -> Packet {
        let params = self.params.map(|params| ("params".into(), params));
        let call_id = self.call_id.map(|id| ("callId".into(), id.into()));
        let body = [("method".into(), self.method.into())].into_iter().chain(params).chain(call_id).collect();
        Packet::event(RPC_REQUEST, [rmpv::Value::Map(body)])
    }
}

/// What a caller that wants to know gets when its call is held, and when it goes on.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RpcWaiting<'a> {
    /// The method as the caller wrote it.
    pub method: &'a str,
    /// How long the call has been without its daemon, in milliseconds.
    pub since_ms: u64,
    /// How long it will be held at most, in milliseconds; 0: it is held no longer.
    pub deadline_ms: u64,
}

/// The value as if it were no `Option`: inside `serialize_some`, socketioxide's parser no longer sees binary.
fn bare<S: Serializer>(value: &Option<rmpv::Value>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => value.serialize(serializer),
        None => serializer.serialize_unit(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn args(json: serde_json::Value) -> Args {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_stand_in_beside_an_attachment_is_forged() {
        let stand_in = args(serde_json::json!([{"a": [{"_placeholder": true, "num": 99}]}]));
        assert!(fit(stand_in.clone()).is_ok(), "without attachments it is an object like any other");
        let attachment = Args(vec!["text".into(), rmpv::Value::Array(vec![rmpv::Value::Binary(vec![1])])]);
        assert!(fit(attachment.clone()).is_ok());
        assert_eq!(fit(Args([stand_in.0, attachment.0].concat())), Err(Unfit::Malformed));
    }

    #[test]
    fn attachments_are_as_many_as_a_client_takes() {
        let attachments = |count| Args(vec![rmpv::Value::Array(vec![rmpv::Value::Binary(vec![1]); count])]);
        assert!(fit(attachments(ATTACHMENTS_MAX)).is_ok());
        assert_eq!(fit(attachments(ATTACHMENTS_MAX + 1)), Err(Unfit::TooManyAttachments));
    }

    #[test]
    fn memory_is_that_of_every_value_in_it() {
        let value = size_of::<rmpv::Value>();
        assert_eq!(memory_bytes(&rmpv::Value::Nil), value);
        assert_eq!(memory_bytes(&args(serde_json::json!([[0, "abc"]])).0[0]), 3 * value + 3);
        assert_eq!(memory_bytes(&args(serde_json::json!([{"k": [1]}])).0[0]), 4 * value + 1);
    }

    #[test]
    fn an_answer_without_a_result_has_none() {
        assert_eq!(serde_json::to_string(&Answer::result(None)).unwrap(), r#"{"ok":true}"#);
        assert_eq!(
            serde_json::to_string(&Answer::result(Some(rmpv::Value::Nil))).unwrap(),
            r#"{"ok":true,"result":null}"#
        );
        assert_eq!(serde_json::to_string(&Answer::error("no")).unwrap(), r#"{"ok":false,"error":"no"}"#);
    }

    #[test]
    fn what_is_taken_out_of_a_map_is_gone() {
        let mut body = args(serde_json::json!([{"method": "m", "params": 1}])).into_first().unwrap();
        assert_eq!(take(&mut body, "method"), Some("m".into()));
        assert_eq!(take(&mut body, "method"), None);
        assert_eq!(take(&mut rmpv::Value::Nil, "method"), None);
        let mut twice = rmpv::Value::Map(vec![("a".into(), 1.into()), ("a".into(), 2.into())]);
        assert_eq!(take(&mut twice, "a"), Some(2.into()));
    }
}
