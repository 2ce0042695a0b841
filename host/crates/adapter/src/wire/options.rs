//! The recipients of a message and how it is delivered: `opts`.

use rmpv::Value;

/// A flag that only servers of this kind know. The sender needs no type 11 besides the acknowledgement of its one socket, which saves a
/// message. Node's adapter ignores the flag and sends type 11.
pub const UNCOUNTED: &str = "uncounted";
/// The flag of a request that is part of a trace: its W3C `traceparent`. Node's adapter ignores it.
pub const TRACEPARENT: &str = "traceparent";

/// The recipients of a broadcast, a change of rooms or a fetch.
///
/// An empty `rooms` means *every socket of the namespace*. Do not publish a list of rooms that became empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// The sockets in any of these rooms; every socket of the namespace when empty. A socket's own id is a room.
    pub rooms: Vec<String>,
    /// The sockets in any of these rooms are left out.
    pub except: Vec<String>,
    /// How to deliver.
    pub flags: Flags,
}

impl Options {
    /// Everyone in the namespace.
    pub fn everyone() -> Self {
        Options::default()
    }

    /// The sockets in one room.
    pub fn room(room: impl Into<String>) -> Self {
        Options { rooms: vec![room.into()], ..Options::default() }
    }
}

/// The flags of a broadcast, in the order of its sender. A nil flag counts as not set.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Flags(pub(super) Vec<(Value, Value)>);

impl Flags {
    /// Adds a flag. A flag with the same name is replaced.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.retain(|(key, _)| key.as_str() != Some(name));
        self.0.push((name.into(), value.into()));
        self
    }

    /// A flag's value.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().rev().find(|(key, _)| key.as_str() == Some(name));
        found.map(|(_, value)| value).filter(|value| !value.is_nil())
    }

    /// The name and value of every flag, also of nil ones, in the sender's order.
    pub fn iter(&self) -> impl Iterator<Item = (&Value, &Value)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// Whether no flag is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `local`: only for sockets of the sender's server. Such a broadcast is never published.
    pub fn local(&self) -> bool {
        self.is_true("local")
    }

    /// `volatile`: may be dropped for a client that cannot take it now.
    pub fn volatile(&self) -> bool {
        self.is_true("volatile")
    }

    /// `compress`, if the sender set it.
    pub fn compress(&self) -> Option<bool> {
        self.get("compress").and_then(Value::as_bool)
    }

    /// `expectSingleResponse`: the request of one remote socket's `emitWithAck`.
    pub fn expect_single_response(&self) -> bool {
        self.is_true("expectSingleResponse")
    }

    /// [`UNCOUNTED`]: the sender needs the number of sockets only if it is 0.
    pub fn uncounted(&self) -> bool {
        self.is_true(UNCOUNTED)
    }

    /// `timeout`: how long the sender waits for acks or answers, in milliseconds.
    pub fn timeout_ms(&self) -> Option<u64> {
        let value = self.get("timeout")?;
        // A JavaScript number may be a fraction; the cast saturates, and a negative or NaN is 0.
        value.as_u64().or_else(|| value.as_f64().map(|ms| ms as u64))
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool) == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_flags_by_name() {
        let flags = Flags::default()
            .with("volatile", true)
            .with(UNCOUNTED, true)
            .with("compress", false)
            .with("timeout", 1500.5);
        assert!(flags.volatile() && flags.uncounted() && !flags.local() && !flags.expect_single_response());
        assert_eq!((flags.compress(), flags.timeout_ms()), (Some(false), Some(1500)));
        assert_eq!(flags.clone().with("timeout", Value::Nil).timeout_ms(), None);
        assert_eq!(flags.with("timeout", -5).timeout_ms(), Some(0));
    }
}
