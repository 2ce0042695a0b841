//! Rollouts: brings a policy that is pushed to one replica to all replicas of a cluster. All of them prepare it, and then either all
//! serve it or none does.
//!
//! The machine of `pointwork-core` ([`Follower`](pointwork_core::rollout::Follower)) decides. This room feeds it from Redis (`store`)
//! and carries out its steps (`follow`). While Redis is away, the policies that serve go on serving.

mod codec;
mod error;
mod follow;
mod operations;
mod prepare;
mod run;
mod slot_state;
mod state;
mod status;
mod steps;
mod store;

pub use self::{
    error::RolloutError, operations::RolloutChange, state::Rollouts, status::SlotRollout, store::RolloutStoreError,
};
