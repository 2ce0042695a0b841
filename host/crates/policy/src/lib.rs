//! The policy engine: wasm components that answer the host's routing questions, swapped while it serves.
//!
//! [`Engine`] is made once. Each slot has a [`Policy`], asked with [`Policy::decide`] and changed with [`Policy::load`];
//! whatever a guest does, a decision is answered, by the native rule if need be, and a generation that fails too often is
//! given up for the last good one ([`Breaker`]). Arms answer beside what serves ([`Policy::decide_by`], [`Policy::ask_arm`]). A guest runs in a sandbox without files,
//! network, clock or randomness, with a deadline and a bound on its memory in every call.

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
pub use contract::slot::Slot;
pub use contract::slot_name::{NoSlot, SlotName};
pub use contract::target::{self, Target};
pub use engine::{Engine, EngineError};
pub use guest::{Answer, AskError, Asker, Digest, FailureKind, Inspection, LoadError, Module, NoDigest, PolicyJson};
pub use guest::{WASM_MAX_BYTES, inspect};
pub use sandbox::SlotLimits;
pub use slot::{ARMS_MAX, ArmError, ArmStatus, Breaker, By, Decision, DecisionFailure, KEPT_MAX, KeptStatus};
pub use slot::{LoadFailure, LoadReport, Policy, Prepared, QUARANTINED_MAX, Quarantined, Shadow, SlotStatus, Standing};
pub use slot::{Trip, TripHook, UndoError};
