//! A question and the verdict it got, of any slot.

use crate::contract::question_bounds as bounds;
use crate::contract::slot::Slot;
use crate::contract::slot_name::SlotName;
use crate::contract::{grace, presence, settle, target};
use grace::Grace;
use presence::Presence;
use serde::Serialize;
use serde::de::DeserializeOwned;
use settle::Settle;
use std::fmt::Debug;
use target::Target;

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
