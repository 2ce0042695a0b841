//! The optional parts of the protocol that a client supports.

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess};

use super::{
    any_value::{self, FromAnyValue},
    field::Field,
};

/// What a client supports. A client that states nothing is served like by the original server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// `rpc-waiting`: it receives an event when one of its calls has to wait.
    pub waiting: bool,
    /// `rpc-resume`: as a daemon, it sends results by `rpc-result` that it could not acknowledge.
    pub resume: bool,
    /// `offsets`: its broadcasts carry their offset, and after a reconnect it receives those that it missed.
    pub offsets: bool,
}

impl Capabilities {
    /// Ignores an unknown name, which may be one of a later version.
    fn add(&mut self, name: &str) {
        match name {
            "rpc-waiting" => self.waiting = true,
            "rpc-resume" => self.resume = true,
            "offsets" => self.offsets = true,
            _ => {}
        }
    }
}

impl FromAnyValue for Capabilities {
    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut capabilities = Self::default();
        while let Some(field) = list.next_element::<Field>()? {
            if let Field::Text(name) = field {
                capabilities.add(&name);
            }
        }
        Ok(capabilities)
    }
}

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any_value::deserialize(deserializer)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: serde_json::Value) -> Capabilities {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn reads_known_names_and_ignores_others() {
        assert_eq!(of(json!([])), Capabilities::default());
        assert_eq!(of(json!(["rpc-waiting"])), Capabilities { waiting: true, ..Capabilities::default() });
        assert!(of(json!(["x", "rpc-resume", 7, null, ["offsets"]])).resume);
        let all = Capabilities { waiting: true, resume: true, offsets: true };
        assert_eq!(of(json!(["offsets", "rpc-resume", "rpc-waiting", "offsets"])), all);
    }

    #[test]
    fn reads_nothing_from_a_value_that_is_no_list() {
        for value in
            [json!(null), json!("offsets"), json!(true), json!(-1), json!(1), json!(0.5), json!({"0": "offsets"})]
        {
            assert_eq!(of(value.clone()), Capabilities::default(), "{value}");
        }
    }
}
