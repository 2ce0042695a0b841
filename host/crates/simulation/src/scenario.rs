//! Scenarios: what a simulated world is like. A file says it in TOML; `tests/scenarios` holds those that ship.
//!
//! ```toml
//! summary = "One line for the operator"
//! [settle]                 # worlds of devices, see [`SettleScenario`]; or [rpc], see [`RpcScenario`]
//! replicas = 2
//! …
//! ```
//! Every number has a bound, and a key that is not known is an error, so that a misspelt one is not just left out. A
//! number that may be drawn is a [`Span`]: `250`, or `[100, 400]`.

mod bounds;
mod file;
mod rpc;
mod settle;
mod shipped;
mod span;

pub use bounds::{FILE_MAX_BYTES, ScenarioError};
pub use file::{Scenario, Worlds};
pub use rpc::{Faults, RpcScenario, Steps};
pub use settle::{Clients, Network, Replicas, SettleScenario, StoreTrouble, When};
pub use shipped::SHIPPED;
pub use span::Span;
