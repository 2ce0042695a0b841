//! The policy engine: wasm components that answer the host's routing questions, swapped while it serves.
//!
//! [`Engine`] is made once. Each slot has a [`Policy`], asked with [`Policy::decide`] and changed with [`Policy::load`];
//! whatever a guest does, a decision is answered, by the native rule if need be, and a generation that fails too often is
//! given up for the last good one ([`Breaker`]). Arms answer beside what serves ([`Policy::decide_by`], [`Policy::ask_arm`]). A guest runs in a sandbox without files,
//! network, clock or randomness, with a deadline and a bound on its memory in every call.

mod arms;
mod background;
mod backtrace;
mod bindings;
mod breaker;
mod component;
mod configuration;
pub mod contract;
mod decision;
mod digest;
mod engine;
mod error;
mod generation;
mod history;
mod inspect;
mod instance;
mod key;
mod limits;
mod lock;
mod module;
mod output;
mod policy;
pub mod record;
mod sandbox;
mod slot;
mod status;
mod text;
mod ticker;
mod wasi;

pub use arms::{ARMS_MAX, ArmStatus};
pub use breaker::{Breaker, Trip, TripHook};
pub use component::WASM_MAX_BYTES;
pub use configuration::PolicyJson;
pub use decision::{By, Decision, Shadow};
pub use digest::{Digest, NoDigest};
pub use engine::Engine;
pub use error::{ArmError, EngineError, FailureKind, LoadError, UndoError};
pub use history::{KEPT_MAX, QUARANTINED_MAX, Quarantined, Standing};
pub use inspect::{Inspection, inspect};
pub use key::{device_key, user_key};
pub use limits::SlotLimits;
pub use module::{Answer, AskError, Asker, Module};
pub use policy::{LoadReport, Policy, Prepared};
pub use slot::grace::{self, Grace};
pub use slot::presence::{self, Presence};
pub use slot::settle::{self, Settle};
pub use slot::target::{self, Target};
pub use slot::{NoSlot, Slot, SlotName};
pub use status::{DecisionFailure, KeptStatus, LoadFailure, SlotStatus};
