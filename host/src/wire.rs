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
        Ok(Self { args: args.ok(), bytes: u32::try_from(bytes).unwrap_or(u32::MAX) })
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
    #[serde(skip_serializing_if = "Option::is_none")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<rmpv::Value>,
}
