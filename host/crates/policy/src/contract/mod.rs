//! The contract with policies (`wit/policy.wit`): its shared records, the questions and verdicts of the slots, their bounds.

mod bindings;
mod bounds;
pub mod grace;
mod info;
mod json;
pub(crate) mod key;
pub mod presence;
pub(crate) mod question_bounds;
pub mod settle;
pub(crate) mod slot;
pub(crate) mod slot_name;
pub mod target;

pub use bindings::shared::pointwork::policy::types::{Call, Departure, Moment, PolicyError};
pub use bounds::{CONTRACT_VERSION, SPAN_MAX_MS, UNKNOWN};
pub use info::Info;
