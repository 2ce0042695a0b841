//! The `presence` slot: whether a call in flight is given up when its target has left or is in doubt.

use super::bounds::{check_call, check_count, check_span};
use super::slot::bind;
use super::{Call, Moment, Slot, SlotName};
use serde::{Deserialize, Serialize};

pub use super::bindings::presence::exports::pointwork::policy::presence::{Doubt, Verdict};

/// The `presence` slot.
#[derive(Debug, Clone, Copy)]
pub struct Presence;

/// The arguments of `presence.judge`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Question {
    /// The moment; its key is the user's.
    pub at: Moment,
    /// The call.
    pub call: Call,
    /// What is known of its target; at most 8 returns.
    pub doubt: Doubt,
}

impl Slot for Presence {
    const NAME: SlotName = SlotName::Presence;
    type Question = Question;
    type Verdict = Verdict;

    fn check_question(question: &Question) -> Result<(), String> {
        check_call(&question.call)?;
        check_count("doubt.returns-ms", question.doubt.returns_ms.len(), 0..=8)
    }

    fn check(_: &Question, verdict: &Verdict) -> Result<(), String> {
        match *verdict {
            Verdict::Hold(span_ms) => check_span("hold", span_ms),
            Verdict::Abort => Ok(()),
        }
    }

    bind!(presence, PresencePolicyPre, PresencePolicy, |guest, store, question| {
        guest.pointwork_policy_presence().call_judge(store, question.at, &question.call, &question.doubt)
    });
}
