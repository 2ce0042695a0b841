//! The contract's types in JSON: names as in `wit/policy.wit`, flags as a list of names, 64 bits as hexadecimal text.
//!
//! `bindgen!` makes the types and cannot be told these names, so each has a description here that serde checks against it,
//! field by field: one that the contract gains does not compile until it is here.

use crate::contract::grace::Absence;
use crate::contract::presence::{self, Doubt};
use crate::contract::settle::{self, Event, Happening, Incumbent, Liveness, Newcomer};
use crate::contract::target::{Candidate, Choice, Traits};
use crate::contract::{Call, Departure, Moment};
use serde::de::{Deserializer, Error as _, SeqAccess, Unexpected, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// The type itself takes the form of its description.
macro_rules! as_described {
    ($($description:ident => $type:ty),* $(,)?) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $description::serialize(self, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $description::deserialize(deserializer)
            }
        }
    )*};
}

as_described! {
    MomentForm => Moment,
    CallForm => Call,
    DepartureForm => Departure,
    CandidateForm => Candidate,
    ChoiceForm => Choice,
    AbsenceForm => Absence,
    DoubtForm => Doubt,
    PresenceForm => presence::Verdict,
    LivenessForm => Liveness,
    HappeningForm => Happening,
    IncumbentForm => Incumbent,
    NewcomerForm => Newcomer,
    EventForm => Event,
    SettleForm => settle::Verdict,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Moment", rename_all = "kebab-case", deny_unknown_fields)]
struct MomentForm {
    now_ms: u64,
    #[serde(with = "hex")]
    seed: u64,
    #[serde(with = "hex")]
    key: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Call", rename_all = "kebab-case", deny_unknown_fields)]
struct CallForm {
    method: String,
    params_bytes: u32,
    waited_ms: u32,
    left_ms: u32,
    attempt: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Departure", rename_all = "kebab-case")]
enum DepartureForm {
    NeverSeen,
    Closed,
    Unregistered,
    TransportLost,
    ReplicaLost,
    ReplicaSilent,
    Drained,
    Evicted,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Candidate", rename_all = "kebab-case", deny_unknown_fields)]
struct CandidateForm {
    replica: u32,
    registered_ms: u32,
    idle_ms: u32,
    in_flight: u32,
    answer_us: u32,
    unanswered: u32,
    traits: Traits,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Choice", rename_all = "kebab-case")]
enum ChoiceForm {
    Pick(u32),
    Reject,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Absence", rename_all = "kebab-case", deny_unknown_fields)]
struct AbsenceForm {
    cause: Departure,
    gone_ms: u32,
    departures: u32,
    returns_ms: Vec<u32>,
    waiting: u32,
    replica_age_ms: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Doubt", rename_all = "kebab-case", deny_unknown_fields)]
struct DoubtForm {
    cause: Departure,
    since_ms: u32,
    sent_ms: u32,
    resumable: bool,
    returned: bool,
    departures: u32,
    returns_ms: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "presence::Verdict", rename_all = "kebab-case")]
enum PresenceForm {
    Abort,
    Hold(u32),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Liveness", rename_all = "kebab-case")]
enum LivenessForm {
    Alive,
    Doubtful,
    Gone,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Happening", rename_all = "kebab-case")]
enum HappeningForm {
    Accepted,
    Refused,
    Evicted,
    Lost,
    Closed,
    Refreshed,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Incumbent", rename_all = "kebab-case", deny_unknown_fields)]
struct IncumbentForm {
    liveness: Liveness,
    age_ms: u32,
    idle_ms: u32,
    heartbeat_ms: u32,
    local: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Newcomer", rename_all = "kebab-case", deny_unknown_fields)]
struct NewcomerForm {
    paired: bool,
    same_fingerprint: bool,
    same_address: bool,
    polling: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Event", rename_all = "kebab-case", deny_unknown_fields)]
struct EventForm {
    ago_ms: u32,
    what: Happening,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "settle::Verdict", rename_all = "kebab-case")]
enum SettleForm {
    Accept,
    Refuse(u32),
    Beside(u32),
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
            let known = TRAITS.iter().find(|(known, _)| *known == name).map(|(_, flag)| *flag);
            match known {
                Some(flag) if traits & flag != flag => traits |= flag,
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
