//! Experiments: assigns units to arms, the same on every replica, measures what the arms lead to, and stops an experiment whose
//! treatment crosses a guardrail.
//!
//! The store (`store`) holds all experiments as one value, which changes by compare-and-set. Every replica reads it each second,
//! and at once when another replica announces a change. A change that ends, pauses or reweighs an experiment takes effect at once
//! (`apply`). The modules of arms are loaded beside that (`load_arms`). Every half second, what decisions left behind is flushed to
//! the store (`run`). One replica at a time evaluates the units (`evaluate`). Each replica makes promoted treatments serve
//! (`promote`).
//!
//! While the store is away, the experiments go on as they were last known. If the store has lost them, they are written again, as
//! long as it has their modules.

mod apply;
mod change;
mod error;
mod evaluate;
mod load_arms;
mod promote;
mod report;
mod rows;
mod run;
mod show;
mod state;
mod store;
mod unit_tracker;

pub use self::{
    change::{New as NewExperiment, NewArm},
    error::ExperimentError,
    state::Experiments,
    store::ExperimentStoreError,
};
