//! Serves one slot: a policy that can be swapped at any time, arms beside it, and the native rule behind it.

mod arms;
mod breaker;
mod counters;
mod decide;
mod decision;
mod history;
mod load;
mod policy;
mod status;
mod undo;

pub use arms::{ARMS_MAX, ArmError};
pub use breaker::{BREAKER_FAILURES, BREAKER_WINDOW_MS, Breaker, Trip, TripHook};
pub use decision::{By, Decision, Shadow};
pub use history::{KEPT_MAX, QUARANTINED_MAX, Quarantined, Standing};
pub use load::{LoadReport, Prepared};
pub use policy::Policy;
pub use status::{ArmStatus, DecisionFailure, KeptStatus, LoadFailure, SlotStatus};
pub use undo::UndoError;
