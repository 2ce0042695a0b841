//! Reads and writes the contract's types as JSON: names as in `wit/policy.wit`, flags as a list of names, 64 bits as
//! hexadecimal text.
//!
//! `bindgen!` cannot be given these names, so each generated type is described here a second time. A field that is
//! added to the contract does not compile until it is described.

use crate::contract::grace::Absence;
use crate::contract::presence::{self, Doubt};
use crate::contract::settle::{self, Event, Happening, Incumbent, Liveness, Newcomer};
use crate::contract::target::{Candidate, Choice, Traits};
use crate::contract::{Call, Departure, Moment};
use serde::de::{Deserializer, Error as _, SeqAccess, Unexpected, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// Implements `Serialize` and `Deserialize` for a generated type, as described.
macro_rules! json_form {
    ($($kind:tt $type:path = $remote:literal { $($body:tt)* })*) => {$(
        const _: () = {
            #[derive(Serialize, Deserialize)]
            #[serde(remote = $remote, rename_all = "kebab-case", deny_unknown_fields)]
            $kind Form { $($body)* }

            impl Serialize for $type {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    Form::serialize(self, serializer)
                }
            }

            impl<'de> Deserialize<'de> for $type {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    Form::deserialize(deserializer)
                }
            }
        };
    )*};
}

json_form! {
    struct Moment = "Moment" { now_ms: u64, #[serde(with = "hex")] seed: u64, #[serde(with = "hex")] key: u64 }
    struct Call = "Call" { method: String, params_bytes: u32, waited_ms: u32, left_ms: u32, attempt: u32 }
    enum Departure = "Departure" {
        NeverSeen, Closed, Unregistered, TransportLost, ReplicaLost, ReplicaSilent, Drained, Evicted,
    }
    struct Candidate = "Candidate" {
        replica: u32, registered_ms: u32, idle_ms: u32, in_flight: u32, answer_us: u32, unanswered: u32,
        traits: Traits,
    }
    enum Choice = "Choice" { Pick(u32), Reject }
    struct Absence = "Absence" {
        cause: Departure, gone_ms: u32, departures: u32, returns_ms: Vec<u32>, waiting: u32, replica_age_ms: u32,
    }
    struct Doubt = "Doubt" {
        cause: Departure, since_ms: u32, sent_ms: u32, resumable: bool, returned: bool, departures: u32,
        returns_ms: Vec<u32>,
    }
    enum presence::Verdict = "presence::Verdict" { Abort, Hold(u32) }
    enum Liveness = "Liveness" { Alive, Doubtful, Gone }
    enum Happening = "Happening" { Accepted, Refused, Evicted, Lost, Closed, Refreshed }
    struct Incumbent = "Incumbent" { liveness: Liveness, age_ms: u32, idle_ms: u32, heartbeat_ms: u32, local: bool }
    struct Newcomer = "Newcomer" { paired: bool, same_fingerprint: bool, same_address: bool, polling: bool }
    struct Event = "Event" { ago_ms: u32, what: Happening }
    enum settle::Verdict = "settle::Verdict" { Accept, Refuse(u32), Beside(u32) }
}

const TRAITS: [(&str, Traits); 6] = [
    ("local", Traits::LOCAL),
    ("recovered", Traits::RECOVERED),
    ("draining", Traits::DRAINING),
    ("resumable", Traits::RESUMABLE),
    ("foreign", Traits::FOREIGN),
    ("caller", Traits::CALLER),
];

impl Serialize for Traits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for (name, flag) in TRAITS {
            if *self & flag == flag {
                list.serialize_element(name)?;
            }
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for Traits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(TraitsVisitor)
    }
}

struct TraitsVisitor;

impl<'de> Visitor<'de> for TraitsVisitor {
    type Value = Traits;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of traits, each once: ")?;
        f.write_str(&TRAITS.map(|(name, _)| name).join(", "))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Traits, A::Error> {
        let mut traits = Traits::empty();
        while let Some(name) = list.next_element::<String>()? {
            match TRAITS.into_iter().find(|(known, _)| *known == name) {
                Some((_, flag)) if traits & flag != flag => traits |= flag,
                _ => return Err(A::Error::invalid_value(Unexpected::Str(&name), &self)),
            }
        }
        Ok(traits)
    }
}

/// 64 bits as 16 hexadecimal digits: many readers of JSON keep 53 bits of a number.
mod hex {
    use super::{Deserialize, Deserializer, Serializer, Unexpected};
    use serde::de::Error as _;

    const WANTED: &&str = &"16 lower-case hexadecimal digits";

    pub(super) fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{value:016x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_hex = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let value = is_hex.then(|| u64::from_str_radix(&text, 16).ok()).flatten();
        value.ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), WANTED))
    }
}
