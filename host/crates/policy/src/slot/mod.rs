//! What serves one slot: a policy that can be swapped at any time, its arms, its breaker, and the ways back.

mod arms;
mod breaker;
mod counters;
mod decide;
mod decision;
mod history;
mod policy;
mod status;
mod undo;

pub use arms::{ARMS_MAX, ArmError};
pub use breaker::{Breaker, Trip, TripHook};
pub use decision::{By, Decision, Shadow};
pub use history::{KEPT_MAX, QUARANTINED_MAX, Quarantined, Standing};
pub use policy::{LoadReport, Policy, Prepared};
pub use status::{ArmStatus, DecisionFailure, KeptStatus, LoadFailure, SlotStatus};
pub use undo::UndoError;
