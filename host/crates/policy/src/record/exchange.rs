//! A question and its verdict, of any slot.

use crate::contract::{Grace, Presence, Settle, Slot, SlotName, Target};
use crate::contract::{grace, presence, settle, target};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// A question and its verdict.
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

/// A slot whose questions and verdicts have the record's JSON form: all four.
pub trait Recorded:
    Slot<Question: Debug + Clone + PartialEq + Serialize + DeserializeOwned, Verdict: Copy + Serialize + DeserializeOwned>
{
    /// The exchange of a question and a verdict of this slot.
    fn exchange(question: Self::Question, verdict: Self::Verdict) -> Exchange;

    /// The question and verdict of an exchange, if it is this slot's.
    fn of(exchange: &Exchange) -> Option<(&Self::Question, &Self::Verdict)>;
}

macro_rules! recorded {
    ($slot:ident) => {
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
        }
    };
}

recorded!(Target);
recorded!(Grace);
recorded!(Presence);
recorded!(Settle);
