//! The messages of calls that the host sends to callers and daemons.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use socketioxide_redis_streams::wire::Packet;

/// The answer to an `rpc-call`.
#[derive(Debug, Serialize)]
pub(crate) struct RpcAnswer {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "without_some")]
    result: Option<rmpv::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'static, str>>,
}

impl RpcAnswer {
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

/// The event that sends a request to a daemon.
pub(crate) const RPC_REQUEST: &str = "rpc-request";

/// The content of [`RPC_REQUEST`].
#[derive(Debug, Serialize)]
pub(crate) struct RpcRequest<'a> {
    /// The method as the caller sent it.
    pub method: &'a str,
    /// The parameters as the caller sent them, if any.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "without_some")]
    pub params: Option<rmpv::Value>,
    /// The id of the call, for a daemon that may send its result later.
    #[serde(rename = "callId", skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

impl RpcRequest<'_> {
    /// The request as a packet for a daemon of another replica.
    pub(crate) fn into_packet(self) -> Packet {
        let params = self.params.map(|params| ("params".into(), params));
        let call_id = self.call_id.map(|id| ("callId".into(), id.into()));
        let body = [("method".into(), self.method.into())].into_iter().chain(params).chain(call_id).collect();
        Packet::event(RPC_REQUEST, [rmpv::Value::Map(body)])
    }
}

/// Serializes the value without `serialize_some`, in which socketioxide's parser does not find binary.
fn without_some<S: Serializer>(value: &Option<rmpv::Value>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => value.serialize(serializer),
        None => serializer.serialize_unit(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_result_has_no_such_field() {
        assert_eq!(serde_json::to_string(&RpcAnswer::result(None)).unwrap(), r#"{"ok":true}"#);
        assert_eq!(
            serde_json::to_string(&RpcAnswer::result(Some(rmpv::Value::Nil))).unwrap(),
            r#"{"ok":true,"result":null}"#
        );
        assert_eq!(serde_json::to_string(&RpcAnswer::error("no")).unwrap(), r#"{"ok":false,"error":"no"}"#);
    }
}
