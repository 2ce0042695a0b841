//! The `grace` slot: how long a call waits when no daemon has registered its method.

use super::bounds::{check_call, check_count, check_span};
use super::slot::bind;
use super::{Call, Moment, Slot, SlotName};
use serde::{Deserialize, Serialize};

pub use super::bindings::grace::exports::pointwork::policy::grace::Absence;

/// The `grace` slot. Its verdict is a time span in milliseconds from now; 0 fails the call at once.
#[derive(Debug, Clone, Copy)]
pub struct Grace;

/// The arguments of `grace.wait`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Question {
    /// The moment; its key is the user's.
    pub at: Moment,
    /// The call.
    pub call: Call,
    /// What is known of the absent daemon; at most 8 returns.
    pub absence: Absence,
}

impl Slot for Grace {
    const NAME: SlotName = SlotName::Grace;
    type Question = Question;
    type Verdict = u32;

    fn check_question(question: &Question) -> Result<(), String> {
        check_call(&question.call)?;
        check_count("absence.returns-ms", question.absence.returns_ms.len(), 0..=8)
    }

    fn check(_: &Question, verdict: &u32) -> Result<(), String> {
        check_span("wait", *verdict)
    }

    bind!(grace, GracePolicyPre, GracePolicy, |guest, store, question| {
        guest.pointwork_policy_grace().call_wait(store, question.at, &question.call, &question.absence)
    });
}
