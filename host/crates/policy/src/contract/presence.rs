//! Whether a call in flight is given up when its target has left or is in doubt.

use super::bounds::check_span;
use super::slot::{Slot, bind};
use super::slot_name::SlotName;
use crate::contract::{Call, Moment, PolicyError};
use crate::sandbox::Sandbox;
use serde::{Deserialize, Serialize};
use wasmtime::Store;

pub use crate::contract::bindings::presence::exports::pointwork::policy::presence::{Doubt, Verdict};

/// The `presence` slot.
#[derive(Debug, Clone, Copy)]
pub struct Presence;

/// What `presence.judge` is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Question {
    /// The moment; its key is the user's.
    pub at: Moment,
    /// The call.
    pub call: Call,
    /// What is known of its target.
    pub doubt: Doubt,
}

impl Slot for Presence {
    const NAME: SlotName = SlotName::Presence;
    type Question = Question;
    type Verdict = Verdict;

    fn moment(question: &Question) -> &Moment {
        &question.at
    }

    fn check(_: &Question, verdict: &Verdict) -> Result<(), String> {
        match *verdict {
            Verdict::Hold(span_ms) => check_span("hold", span_ms),
            Verdict::Abort => Ok(()),
        }
    }

    bind!(presence, PresencePolicyPre, PresencePolicy);

    fn ask(
        guest: &Self::Guest,
        store: &mut Store<Sandbox>,
        question: &Question,
    ) -> wasmtime::Result<Result<Verdict, PolicyError>> {
        guest.pointwork_policy_presence().call_judge(store, question.at, &question.call, &question.doubt)
    }
}
