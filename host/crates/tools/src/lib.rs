//! Tools for authors of policies, which need no host: check, test, replay and simulate.

pub mod check;
mod policy_file;
pub mod questions;
pub mod replay;
pub mod simulate;
pub mod test;
