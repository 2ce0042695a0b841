//! Encodes and decodes the content of a heartbeat.

use rmpv::Value;

/// What a heartbeat says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heartbeat {
    /// The sender's [`Listener::revision`](crate::Listener::revision).
    pub(crate) revision: u64,
    /// How often messages to or from the sender may have been lost.
    pub(crate) interruptions: u64,
    /// The receiver must answer with a heartbeat at once.
    pub(crate) hello: bool,
    /// The sender unpacks batches of messages.
    pub(crate) unpacks_batches: bool,
}

impl Heartbeat {
    pub(crate) fn to_value(self) -> Value {
        Value::Map(vec![
            ("revision".into(), self.revision.into()),
            ("interruptions".into(), self.interruptions.into()),
            ("hello".into(), self.hello.into()),
            ("parcels".into(), self.unpacks_batches.into()),
        ])
    }

    /// `None` if a number is missing. A missing flag is `false`.
    pub(crate) fn from_value(data: &Value) -> Option<Self> {
        let field = |name: &str| {
            let found = data.as_map()?.iter().find(|(key, _)| key.as_str() == Some(name));
            found.map(|(_, value)| value)
        };
        let is_true = |name| field(name).and_then(Value::as_bool) == Some(true);
        Some(Heartbeat {
            revision: field("revision")?.as_u64()?,
            interruptions: field("interruptions")?.as_u64()?,
            hello: is_true("hello"),
            unpacks_batches: is_true("parcels"),
        })
    }
}
