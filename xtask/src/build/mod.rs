//! Builds the wasm guests, and writes the first files of a new policy.

pub(crate) mod new_policy;
pub(crate) mod policies;
