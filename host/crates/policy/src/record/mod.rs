//! Decision records: what was asked, what was answered, and by whom, as one JSON object a line.
//!
//! A record holds a decision's exact input, so it can be asked again: time and seed are in it. The names are those of
//! `wit/policy.wit`; the shape is in `line.rs`. It holds no token, no parameters and no content, for a question has none.

mod bounds;
mod line;
mod reader;
mod schema;

use crate::digest::Digest;
use crate::error::FailureKind;
use crate::slot::grace::Grace;
use crate::slot::presence::Presence;
use crate::slot::settle::Settle;
use crate::slot::target::Target;
use crate::slot::{Slot, SlotName, grace, presence, settle, target};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::mem::size_of;
use std::sync::Arc;
use std::time::Duration;

pub use line::LineError;
pub use reader::{LINE_MAX_BYTES, Lines, ReadCause, ReadError, records};

/// The version of the record's shape, its field `v`.
pub const RECORD_VERSION: u32 = 1;

/// One decision of a slot.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRecord {
    /// The replica that decided, by the id of its process.
    pub replica: Arc<str>,
    /// The decision's number in that process; with the replica, its name in a cluster.
    pub decision: u64,
    /// When it was made: milliseconds since the Unix epoch on that replica.
    pub at_ms: u64,
    /// Who made it.
    pub by: Decider,
    /// Why the policy did not, although one was asked.
    pub failure: Option<FailureKind>,
    /// The generation that was asked, if one was.
    pub digest: Option<Digest>,
    /// The arm of an experiment that it was made for.
    pub arm: Option<Arc<str>>,
    /// How long it took.
    pub cost: Duration,
    /// What was asked and what was answered.
    pub exchange: Exchange,
}

/// Who made a decision, in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decider {
    /// A policy.
    Wasm,
    /// The native rule.
    Native,
}

/// A question and the verdict it got, of any slot.
#[derive(Debug, Clone, PartialEq)]
pub enum Exchange {
    /// Which daemon gets a call.
    Target(target::Question, target::Choice),
    /// How long a call waits, in milliseconds.
    Grace(grace::Question, u32),
    /// Whether a call in flight is given up.
    Presence(presence::Question, presence::Verdict),
    /// Which socket holds a device's session.
    Settle(settle::Question, settle::Verdict),
}

impl Exchange {
    /// The slot that was asked.
    pub fn slot(&self) -> SlotName {
        match self {
            Self::Target(..) => SlotName::Target,
            Self::Grace(..) => SlotName::Grace,
            Self::Presence(..) => SlotName::Presence,
            Self::Settle(..) => SlotName::Settle,
        }
    }
}

impl DecisionRecord {
    /// Its name in a cluster: `<replica>/<decision>`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.replica, self.decision)
    }

    /// About how much memory it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let shared = self.arm.as_ref().map_or(0, |arm| arm.len());
        let lists = match &self.exchange {
            Exchange::Target(question, _) => {
                question.call.method.len() + question.candidates.len() * size_of::<target::Candidate>()
            }
            Exchange::Grace(question, _) => question.call.method.len() + question.absence.returns_ms.len() * 4,
            Exchange::Presence(question, _) => question.call.method.len() + question.doubt.returns_ms.len() * 4,
            Exchange::Settle(question, _) => question.history.len() * size_of::<settle::Event>(),
        };
        size_of::<Self>() + shared + lists
    }
}

/// A slot whose questions and verdicts have the record's JSON form: all four.
pub trait Recorded:
    Slot<Question: Debug + Clone + PartialEq + Serialize + DeserializeOwned, Verdict: Copy + Serialize + DeserializeOwned>
{
    /// Of its own question and verdict.
    fn exchange(question: Self::Question, verdict: Self::Verdict) -> Exchange;

    /// Its question and verdict, if the exchange is this slot's.
    fn of(exchange: &Exchange) -> Option<(&Self::Question, &Self::Verdict)>;

    /// Whether a question keeps the contract's bounds; the error says which it does not.
    fn check_question(question: &Self::Question) -> Result<(), String>;
}

macro_rules! recorded {
    ($slot:ident, $check:path) => {
        impl Recorded for $slot {
            fn exchange(question: Self::Question, verdict: Self::Verdict) -> Exchange {
                Exchange::$slot(question, verdict)
            }

            fn of(exchange: &Exchange) -> Option<(&Self::Question, &Self::Verdict)> {
                match exchange {
                    Exchange::$slot(question, verdict) => Some((question, verdict)),
                    _ => None,
                }
            }

            fn check_question(question: &Self::Question) -> Result<(), String> {
                $check(question)
            }
        }
    };
}

recorded!(Target, bounds::target);
recorded!(Grace, bounds::grace);
recorded!(Presence, bounds::presence);
recorded!(Settle, bounds::settle);

#[cfg(test)]
mod tests;
