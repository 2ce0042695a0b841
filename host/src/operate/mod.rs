//! What operators and their tools use: the admin API, the probes, and how far a drain has come.

pub mod admin;
pub(crate) mod drain_phase;
pub(crate) mod probes;
