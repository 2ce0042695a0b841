//! Which of two sockets holds a device's session.

use super::bounds::check_span;
use super::slot::{Slot, bind};
use super::slot_name::SlotName;
use crate::contract::{Moment, PolicyError};
use crate::sandbox::Sandbox;
use serde::{Deserialize, Serialize};
use wasmtime::Store;

pub use crate::contract::bindings::settle::exports::pointwork::policy::settle::{
    Event, Happening, Incumbent, Liveness, Newcomer, Verdict,
};

/// The `settle` slot.
#[derive(Debug, Clone, Copy)]
pub struct Settle;

/// What `settle.decide` is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Question {
    /// The moment; its key is the device's.
    pub at: Moment,
    /// The operator's settle window.
    pub window_ms: u32,
    /// The socket that holds the session.
    pub incumbent: Incumbent,
    /// The socket that wants it.
    pub newcomer: Newcomer,
    /// Newest first; at most 16.
    pub history: Vec<Event>,
}

impl Slot for Settle {
    const NAME: SlotName = SlotName::Settle;
    type Question = Question;
    type Verdict = Verdict;

    fn moment(question: &Question) -> &Moment {
        &question.at
    }

    fn check(_: &Question, verdict: &Verdict) -> Result<(), String> {
        match *verdict {
            Verdict::Accept => Ok(()),
            Verdict::Refuse(span_ms) => check_span("refuse for", span_ms),
            Verdict::Beside(span_ms) => check_span("beside for", span_ms),
        }
    }

    bind!(settle, SettlePolicyPre, SettlePolicy);

    fn ask(
        guest: &Self::Guest,
        store: &mut Store<Sandbox>,
        question: &Question,
    ) -> wasmtime::Result<Result<Verdict, PolicyError>> {
        guest.pointwork_policy_settle().call_decide(
            store,
            question.at,
            question.window_ms,
            question.incumbent,
            question.newcomer,
            &question.history,
        )
    }
}
