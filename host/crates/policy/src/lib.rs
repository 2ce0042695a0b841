//! The policy engine: wasm components that answer the host's routing questions, swapped while it serves.
//!
//! [`Engine`] is made once. Each slot has a [`Policy`], asked with [`Policy::decide`] and changed with [`Policy::load`];
//! whatever a guest does, a decision is answered, by the native rule if need be. A guest runs in a sandbox without files,
//! network, clock or randomness, with a deadline and a bound on its memory in every call.

mod background;
mod backtrace;
mod bindings;
mod component;
pub mod contract;
mod digest;
mod engine;
mod error;
mod generation;
mod inspect;
mod instance;
mod key;
mod limits;
mod output;
mod policy;
mod sandbox;
mod slot;
mod status;
mod text;
mod ticker;
mod wasi;

pub use component::WASM_MAX_BYTES;
pub use digest::Digest;
pub use engine::Engine;
pub use error::{EngineError, FailureKind, LoadError};
pub use inspect::{Inspection, inspect};
pub use key::{device_key, user_key};
pub use limits::SlotLimits;
pub use policy::{By, Decision, LoadReport, Policy};
pub use slot::grace::{self, Grace};
pub use slot::presence::{self, Presence};
pub use slot::settle::{self, Settle};
pub use slot::target::{self, Target};
pub use slot::{Slot, SlotName};
pub use status::{DecisionFailure, LoadFailure, SlotStatus};
