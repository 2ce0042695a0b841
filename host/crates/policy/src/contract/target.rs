//! The `target` slot: which of the daemons that registered a method gets the call.

use super::bounds::{check_call, check_count};
use super::slot::bind;
use super::{Call, Moment, Slot, SlotName};
use serde::{Deserialize, Serialize};

pub use super::bindings::target::exports::pointwork::policy::target::{Candidate, Choice, Traits};

/// The `target` slot.
#[derive(Debug, Clone, Copy)]
pub struct Target;

/// The arguments of `target.choose`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Question {
    /// The moment; its key is the user's.
    pub at: Moment,
    /// The call.
    pub call: Call,
    /// Oldest registration first; 1 to 32.
    pub candidates: Vec<Candidate>,
}

impl Slot for Target {
    const NAME: SlotName = SlotName::Target;
    type Question = Question;
    type Verdict = Choice;

    fn check_question(question: &Question) -> Result<(), String> {
        check_call(&question.call)?;
        check_count("candidates", question.candidates.len(), 1..=32)
    }

    fn check(question: &Question, verdict: &Choice) -> Result<(), String> {
        match *verdict {
            Choice::Pick(index) if index as usize >= question.candidates.len() => {
                Err(format!("pick {index} of {} candidates", question.candidates.len()))
            }
            Choice::Pick(_) | Choice::Reject => Ok(()),
        }
    }

    bind!(target, TargetPolicyPre, TargetPolicy, |guest, store, question| {
        guest.pointwork_policy_target().call_choose(store, question.at, &question.call, &question.candidates)
    });
}
