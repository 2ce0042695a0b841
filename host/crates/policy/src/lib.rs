//! Runs policies: wasm components that answer the host's routing questions and can be swapped while the host serves.
//!
//! Create one [`Engine`]. Each slot has a [`Policy`], which [`Policy::decide`] asks and [`Policy::load`] changes. Every
//! decision is answered whatever a guest does, by the native rule if necessary. If a generation fails too often, the
//! last good one replaces it ([`Breaker`]). Arms answer beside what serves ([`Policy::decide_by`],
//! [`Policy::ask_arm`]). A guest runs in a sandbox without files, network, clock or randomness, with a deadline and a
//! memory limit in every call.

pub mod contract;
mod engine;
mod guest;
pub mod record;
mod sandbox;
mod slot;
mod text;

pub use contract::grace::{self, Grace};
pub use contract::key::{device_key, user_key};
pub use contract::presence::{self, Presence};
pub use contract::settle::{self, Settle};
pub use contract::target::{self, Target};
pub use contract::{NoSlot, Slot, SlotName};
pub use engine::{Engine, EngineError};
pub use guest::{Answer, AskError, Asker, Digest, FailureKind, Inspection, LoadError, Module, NoDigest, PolicyJson};
pub use guest::{WASM_MAX_BYTES, inspect};
pub use sandbox::SlotLimits;
pub use slot::{
    ARMS_MAX, ArmError, ArmStatus, BREAKER_FAILURES, BREAKER_WINDOW_MS, Breaker, By, Decision, DecisionFailure,
    KEPT_MAX, KeptStatus,
};
pub use slot::{LoadFailure, LoadReport, Policy, Prepared, QUARANTINED_MAX, Quarantined, Shadow, SlotStatus, Standing};
pub use slot::{Trip, TripHook, UndoError};
