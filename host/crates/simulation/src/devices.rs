//! Worlds of devices: the real machines of device sessions, one store, a network between them, and devices that open, lose
//! and duplicate their sockets.
//!
//! There is one world, played in two ways. A scenario says what devices and network are like, and [`settle`] measures what
//! the devices go through. What they do of their own accord is drawn from the seed by name, before the rule that is tried
//! has said anything: two rules meet the same world, as far as it does not answer to what they decide. A [`DeviceSchedule`]
//! is random, and lets everything go wrong that can. In both the auditor judges every step, and the world knows what is
//! true: which socket is half-open, and since when a device is without one that counts.

mod audit;
mod conditions;
mod events;
mod flaw;
mod meter;
mod report;
mod rules;
mod scenario_run;
mod schedule;
mod sockets;
#[cfg(test)]
mod storms;
mod world;

pub use flaw::DeviceFlaw;
pub use report::{SettleOutcomes, SettleReport};
pub use rules::{NativeSettle, SettleQuestion, SettleRules};
pub use scenario_run::settle;
pub use schedule::{DeviceReport, DeviceSchedule};
