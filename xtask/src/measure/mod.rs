//! Runs the benches, the gauntlet and the simulated clusters.

pub(crate) mod bench;
pub(crate) mod gauntlet;
pub(crate) mod sim;
