//! What a client says that it can do beyond the field's own protocol.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::field::Field;

/// What a client can do. A client that says nothing is served as the field's server serves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// `rpc-waiting`: it wants to know when a call of its is held.
    pub waiting: bool,
    /// `rpc-resume`: as a daemon, it hands in by `rpc-result` what it could not acknowledge.
    pub resume: bool,
    /// `offsets`: its broadcasts carry their offset, and it gets those that it missed.
    pub offsets: bool,
}

impl Capabilities {
    /// One that is not known is of a later version.
    fn note(&mut self, name: &str) {
        match name {
            "rpc-waiting" => self.waiting = true,
            "rpc-resume" => self.resume = true,
            "offsets" => self.offsets = true,
            _ => {}
        }
    }
}

/// Read from whatever a client sends: what is no list of texts says nothing.
impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor)
    }
}

struct ListVisitor;

impl<'de> Visitor<'de> for ListVisitor {
    type Value = Capabilities;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of capabilities")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Capabilities, A::Error> {
        let mut capabilities = Capabilities::default();
        while let Some(Name(name)) = seq.next_element()? {
            if let Some(name) = name {
                capabilities.note(&name);
            }
        }
        Ok(capabilities)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Capabilities, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Capabilities::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Capabilities, E> {
        Ok(Capabilities::default())
    }

    fn visit_unit<E>(self) -> Result<Capabilities, E> {
        Ok(Capabilities::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Capabilities, E> {
        Ok(Capabilities::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Capabilities, E> {
        Ok(Capabilities::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Capabilities, E> {
        Ok(Capabilities::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Capabilities, E> {
        Ok(Capabilities::default())
    }
}

/// An element of the list: its text, if it is one.
struct Name(Option<String>);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let field = Field::deserialize(deserializer)?;
        Ok(Name(match field {
            Field::Text(name) => Some(name),
            _ => None,
        }))
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
    fn each_has_its_name_and_others_are_of_later_versions() {
        assert_eq!(of(json!([])), Capabilities::default());
        assert_eq!(of(json!(["rpc-waiting"])), Capabilities { waiting: true, ..Capabilities::default() });
        assert!(of(json!(["x", "rpc-resume", 7, null, ["offsets"]])).resume);
        let all = Capabilities { waiting: true, resume: true, offsets: true };
        assert_eq!(of(json!(["offsets", "rpc-resume", "rpc-waiting", "offsets"])), all);
    }

    #[test]
    fn what_is_no_list_says_nothing() {
        for value in
            [json!(null), json!("offsets"), json!(true), json!(-1), json!(1), json!(0.5), json!({"0": "offsets"})]
        {
            assert_eq!(of(value.clone()), Capabilities::default(), "{value}");
        }
    }
}
