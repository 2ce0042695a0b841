//! Worlds of devices: the real machines of device sessions, one store, a network between them, and clients that open, lose and
//! duplicate their sockets as a [`SettleScenario`](crate::scenario::SettleScenario) says.
//!
//! What clients and network do of their own accord is drawn from the seed by name, before the rule that is tried has said
//! anything; so two rules meet the same world, as far as it does not answer to what they decide. The world knows
//! what is true: which socket is half-open, and since when a device is without one that counts.

mod audit;
mod clients;
mod commands;
mod dispatch;
mod events;
mod faults;
mod meter;
mod play;
mod report;
mod rules;
mod sockets;
mod store;
mod world;

pub use play::settle;
pub use report::{SettleOutcomes, SettleReport};
pub use rules::{NativeSettle, SettleQuestion, SettleRules};
