//! Simulates calls: replicas with the real call machines, daemons, callers, and the network between them.

mod audit;
mod client;
mod display;
mod events;
mod liveness;
mod outcomes;
mod replica;
mod rooms;
mod rules;
mod schedule;
#[cfg(test)]
mod tests;
mod world;

pub use outcomes::{ERRORS, RpcOutcomes};
pub use rules::{Native, RuleMoment, Rules};
pub use schedule::{Failure, Report, STEPS, Schedule, Sweep, Swept};
