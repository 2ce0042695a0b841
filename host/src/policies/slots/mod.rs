//! The four slots: asks the policy that serves, and uses the native rule when the policy fails.

mod change;
mod decide;
mod last_good;
mod metrics;
mod prepared;
mod shadow;
mod state;
mod state_dir;

pub use self::{change::NotRetried, prepared::PreparedPolicy, state::Policies};
pub(crate) use self::{
    decide::{DecisionSource, DeviceInArm, SettleDecision},
    shadow::engine_slot,
};
