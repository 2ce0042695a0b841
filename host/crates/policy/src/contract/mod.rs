//! The contract with policies (`wit/policy.wit`): its shared records, and the question and verdict of each slot.

mod bindings;
mod bounds;
pub mod grace;
mod info;
mod json;
pub(crate) mod key;
pub mod presence;
pub mod settle;
mod slot;
mod slot_name;
pub mod target;

pub use bindings::shared::pointwork::policy::types::{Call, Departure, Moment, PolicyError};
pub use bounds::{CONTRACT_VERSION, SPAN_MAX_MS, UNKNOWN};
pub use grace::Grace;
pub use info::Info;
pub use presence::Presence;
pub use settle::Settle;
pub use slot::Slot;
pub use slot_name::{NoSlot, SlotName};
pub use target::Target;
