//! The `settle` slot: which of two sockets holds a device's session.

use super::bounds::{check_count, check_span};
use super::slot::bind;
use super::{Moment, Slot, SlotName};
use serde::{Deserialize, Serialize};

pub use super::bindings::settle::exports::pointwork::policy::settle::{
    Event, Happening, Incumbent, Liveness, Newcomer, Verdict,
};

/// The `settle` slot.
#[derive(Debug, Clone, Copy)]
pub struct Settle;

/// The arguments of `settle.decide`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Question {
    /// The moment; its key is the device's.
    pub at: Moment,
    /// The operator's settle window.
    pub window_ms: u32,
    /// The socket that holds the session.
    pub incumbent: Incumbent,
    /// The socket that requests it.
    pub newcomer: Newcomer,
    /// Newest first; at most 16.
    pub history: Vec<Event>,
}

impl Slot for Settle {
    const NAME: SlotName = SlotName::Settle;
    type Question = Question;
    type Verdict = Verdict;

    fn check_question(question: &Question) -> Result<(), String> {
        check_count("history", question.history.len(), 0..=16)
    }

    fn check(_: &Question, verdict: &Verdict) -> Result<(), String> {
        match *verdict {
            Verdict::Accept => Ok(()),
            Verdict::Refuse(span_ms) => check_span("refuse for", span_ms),
            Verdict::Beside(span_ms) => check_span("beside for", span_ms),
        }
    }

    bind!(settle, SettlePolicyPre, SettlePolicy, |guest, store, question| {
        let Question { at, window_ms, incumbent, newcomer, history } = question;
        guest.pointwork_policy_settle().call_decide(store, *at, *window_ms, *incumbent, *newcomer, history)
    });
}
