//! How long a call waits when nobody has registered its method.

use super::bounds::check_span;
use super::slot::{Slot, bind};
use super::slot_name::SlotName;
use crate::contract::{Call, Moment, PolicyError};
use crate::sandbox::Sandbox;
use serde::{Deserialize, Serialize};
use wasmtime::Store;

pub use crate::contract::bindings::grace::exports::pointwork::policy::grace::Absence;

/// The `grace` slot. Its verdict is a span in milliseconds from now; 0 fails the call at once.
#[derive(Debug, Clone, Copy)]
pub struct Grace;

/// What `grace.wait` is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Question {
    /// The moment; its key is the user's.
    pub at: Moment,
    /// The call.
    pub call: Call,
    /// What is known of the daemon that is not there.
    pub absence: Absence,
}

impl Slot for Grace {
    const NAME: SlotName = SlotName::Grace;
    type Question = Question;
    type Verdict = u32;

    fn moment(question: &Question) -> &Moment {
        &question.at
    }

    fn check(_: &Question, verdict: &u32) -> Result<(), String> {
        check_span("wait", *verdict)
    }

    bind!(grace, GracePolicyPre, GracePolicy);

    fn ask(
        guest: &Self::Guest,
        store: &mut Store<Sandbox>,
        question: &Question,
    ) -> wasmtime::Result<Result<u32, PolicyError>> {
        guest.pointwork_policy_grace().call_wait(store, question.at, &question.call, &question.absence)
    }
}
