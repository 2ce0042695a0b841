//! The native rules by name: the seeds' own. They answer whenever a policy cannot.
//!
//! The default policies say the same in wasm, and a test of the workspace holds the two equal.

pub use super::call::CALL_TIMEOUT_MS;
pub use super::grace::{GRACE_MS, grace};
pub use super::presence::{RECHECK_MS, presence};
pub use super::settle::{SETTLE_MS, settle};
pub use super::target::target;
