//! What clients send and get, as serde types that pass any JSON and any binary through unchanged.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{SeqAccess, Visitor},
    ser::SerializeTuple,
};
use socketioxide::{adapter::Adapter, extract::TryData, handler::FromMessageParts, socket::Socket};
use std::{convert::Infallible, sync::Arc};

/// The arguments of an event or of an acknowledgement, however many there are.
///
/// `rmpv::Value` and not `serde_json::Value`: it is the one that keeps binary attachments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Args(pub Vec<rmpv::Value>);

impl Args {
    /// Whether they hold a stand-in for an attachment beside real attachments. No honest client sends that, and whoever it was
    /// passed on to would be cut off by its own parser.
    #[must_use]
    pub fn are_forged(&self) -> bool {
        let any = |is: fn(&rmpv::Value) -> bool| self.0.iter().any(|arg| contains(arg, is));
        any(rmpv::Value::is_bin) && any(is_placeholder)
    }

    /// The first argument; `undefined` in JavaScript when there is none.
    #[must_use]
    pub fn into_first(self) -> Option<rmpv::Value> {
        self.0.into_iter().next()
    }
}

/// Socketioxide spreads what is (de)serialized as a tuple over the arguments, and treats all else as the first of them.
impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ArgsVisitor;
        impl<'de> Visitor<'de> for ArgsVisitor {
            type Value = Args;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the arguments of an event")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Args, A::Error> {
                let mut args = Vec::new();
                while let Some(arg) = seq.next_element()? {
                    args.push(arg);
                }
                Ok(Args(args))
            }
        }
        deserializer.deserialize_tuple(usize::MAX, ArgsVisitor)
    }
}

impl Serialize for Args {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(self.0.len())?;
        for arg in &self.0 {
            tuple.serialize_element(arg)?;
        }
        tuple.end()
    }
}

fn is_placeholder(value: &rmpv::Value) -> bool {
    value.as_map().is_some_and(|entries| entries.iter().any(|(name, _)| name.as_str() == Some("_placeholder")))
}

/// Whether `is` holds for the value or anything in it. As deep as the parser lets a packet be, 128.
fn contains(value: &rmpv::Value, is: fn(&rmpv::Value) -> bool) -> bool {
    is(value)
        || match value {
            rmpv::Value::Array(values) => values.iter().any(|value| contains(value, is)),
            rmpv::Value::Map(entries) => entries.iter().any(|(_, value)| contains(value, is)),
            _ => false,
        }
}

/// An event as it came in: its arguments, or `None` when they are nested too deeply or refer to attachments that are
/// not there.
pub struct Incoming {
    /// All arguments.
    pub args: Option<Args>,
    /// Size of the packet's text, without binary attachments.
    pub bytes: u32,
}

impl Incoming {
    /// The first argument, if it could be read and there is one.
    #[must_use]
    pub fn into_first(self) -> Option<rmpv::Value> {
        self.args?.into_first()
    }
}

impl<A: Adapter> FromMessageParts<A> for Incoming {
    type Error = Infallible;

    fn from_message_parts(
        socket: &Arc<Socket<A>>,
        value: &mut socketioxide::handler::Value,
        ack_id: &Option<i64>,
    ) -> Result<Self, Infallible> {
        let bytes = value.as_str().map_or(0, |text| text.len());
        let TryData(args) = TryData::<Args>::from_message_parts(socket, value, ack_id)?;
        let args = args.ok().filter(|args| !args.are_forged());
        Ok(Self { args, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) })
    }
}

/// Takes the value of `key` out of a map; `None` when `value` is no map or has no such key.
pub(crate) fn take(value: &mut rmpv::Value, key: &str) -> Option<rmpv::Value> {
    let rmpv::Value::Map(entries) = value else { return None };
    let at = entries.iter().position(|(name, _)| name.as_str() == Some(key))?;
    Some(entries.swap_remove(at).1)
}

/// The answer to an `rpc-call`.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "bare")]
    result: Option<rmpv::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
}

impl Answer {
    /// `{ok: true, result}`; no `result` when the daemon acknowledged without one.
    #[must_use]
    pub(crate) fn result(result: Option<rmpv::Value>) -> Self {
        Self { ok: true, result, error: None }
    }

    /// `{ok: false, error}`.
    #[must_use]
    pub(crate) fn error(error: &'static str) -> Self {
        Self { ok: false, result: None, error: Some(error) }
    }
}

/// What a daemon gets with `rpc-request`.
#[derive(Debug, Serialize)]
pub(crate) struct RpcRequest<'a> {
    /// The method as the caller wrote it.
    pub method: &'a str,
    /// As the caller sent them; absent when it sent none.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "bare")]
    pub params: Option<rmpv::Value>,
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
    fn arguments_are_as_many_as_there_are() {
        assert_eq!(args(serde_json::json!([])).into_first(), None);
        assert_eq!(args(serde_json::json!([7, "x"])).into_first(), Some(7.into()));
        assert_eq!(serde_json::to_string(&args(serde_json::json!([7, {"a": null}]))).unwrap(), r#"[7,{"a":null}]"#);
    }

    #[test]
    fn a_stand_in_beside_an_attachment_is_forged() {
        let stand_in = args(serde_json::json!([{"a": [{"_placeholder": true, "num": 99}]}]));
        assert!(!stand_in.are_forged(), "without attachments it is an object like any other");
        let attachment = Args(vec![rmpv::Value::Array(vec![rmpv::Value::Binary(vec![1])])]);
        assert!(!attachment.are_forged());
        assert!(Args([stand_in.0, attachment.0].concat()).are_forged());
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
    }
}
