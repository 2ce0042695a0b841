//! Picks the first candidate without looking at anything: what is left is the cost of asking.
//!
//! It takes the bindings as they are, without the SDK's configuration, so that it stays the floor as the SDK grows.

use pointwork_policy_sdk::bindings::{meta, target};
use pointwork_policy_sdk::target::{Candidate, Choice};
use pointwork_policy_sdk::{Call, Moment, PolicyError};

/// The policy.
pub struct Nop;

impl meta::exports::pointwork::policy::meta::Guest for Nop {
    fn describe() -> meta::exports::pointwork::policy::meta::Info {
        meta::exports::pointwork::policy::meta::Info {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: env!("CARGO_PKG_DESCRIPTION").into(),
        }
    }

    fn configure(_: String) -> Result<(), String> {
        Ok(())
    }
}

impl target::exports::pointwork::policy::target::Guest for Nop {
    fn choose(_: Moment, _: Call, _: Vec<Candidate>) -> Result<Choice, PolicyError> {
        Ok(Choice::Pick(0))
    }
}

#[cfg(target_family = "wasm")]
const _: () = {
    meta::export!(Nop with_types_in meta);
    target::export!(Nop with_types_in target);
};
