//! What a Pointwork policy needs beside its rule.
//!
//! A policy implements the trait of its slot, [`Target`](target::Target), [`Grace`](grace::Grace),
//! [`Presence`](presence::Presence) or [`Settle`](settle::Settle), and names itself once in that slot's `export_*!` macro.
//! The macro makes the crate a component for the slot: it presents the crate's name, version and description
//! to the host, reads the operator's JSON into the policy's `Config`, and passes decisions on.
//!
//! ```
//! use pointwork_policy_sdk::grace::{Absence, Grace};
//! use pointwork_policy_sdk::{Call, Moment, PolicyError, check_span};
//!
//! /// What the operator may set.
//! #[derive(serde::Deserialize)]
//! #[serde(default, deny_unknown_fields)]
//! struct Config {
//!     /// How long a call waits, in milliseconds.
//!     wait_ms: u32,
//! }
//!
//! impl Default for Config {
//!     fn default() -> Self {
//!         Self { wait_ms: 3_000 }
//!     }
//! }
//!
//! struct Patient(Config);
//!
//! impl Grace for Patient {
//!     type Config = Config;
//!
//!     fn configure(config: Config) -> Result<Self, String> {
//!         check_span("wait_ms", config.wait_ms)?;
//!         Ok(Self(config))
//!     }
//!
//!     fn wait(&self, _: &Moment, _: &Call, _: &Absence) -> Result<u32, PolicyError> {
//!         Ok(self.0.wait_ms)
//!     }
//! }
//!
//! pointwork_policy_sdk::export_grace!(Patient);
//! # fn main() {}
//! ```
//!
//! The crate is a `cdylib` for wasm32-wasip2 and an `rlib` beside it; on any other target the macro exports nothing,
//! so that a rule is tested by a plain `cargo test`.
//!
//! A policy keeps nothing between decisions: `&self` is its configuration. The host may answer the next decision from
//! another instance or another replica, and discards an instance that trapped.

#[doc(hidden)]
pub mod bindings;
mod config;
#[doc(hidden)]
pub mod export;
pub mod grace;
pub mod presence;
pub mod settle;
pub mod target;

pub use bindings::types::{Call, Departure, Moment, PolicyError};
pub use config::{NoConfig, SPAN_MAX_MS, check_span, parse_config};
