//! Worlds of devices: the real machines of device sessions, one store, a network between them, and devices that open,
//! lose and duplicate their sockets.
//!
//! A scenario says what devices and network are like, and [`settle`] measures what the devices go through. What they do
//! of their own accord is drawn from the seed by name, before the rule that is tried has said anything. So two rules
//! meet the same world, except for what follows from their decisions. The tests also play random schedules, in which
//! everything goes wrong that can. The auditor judges every step of both. The world knows what is true: which socket is
//! half-open, and since when a device has no live one.

mod audit;
mod conditions;
mod events;
mod meter;
mod report;
mod rules;
mod scenario_run;
mod sockets;
#[cfg(test)]
mod tests;
mod world;

pub use report::{SettleOutcomes, SettleReport};
pub use rules::{NativeSettle, SettleQuestion, SettleRules};
pub use scenario_run::settle;
