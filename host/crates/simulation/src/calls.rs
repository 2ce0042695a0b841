//! Worlds of calls: replicas with the real call machines, daemons, callers, and the network between them.

mod audit;
mod client;
mod display;
mod events;
mod liveness;
mod machine;
mod outcomes;
mod replica;
mod rooms;
mod rules;
mod schedule;
mod world;

pub use machine::Flaw;
pub use outcomes::{ERRORS, RpcOutcomes};
pub use rules::{Native, RuleMoment, Rules};
pub use schedule::{Failure, Report, STEPS, Schedule, Sweep, Swept};
