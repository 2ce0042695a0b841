//! Simulates clusters of Pointwork's real machines from a seed, on good days and bad ones.
//!
//! There are two kinds of worlds. In worlds of *calls*, replicas run the real `CallMachine`, `Announcer` and
//! `PeerDirectory` for callers and daemons:
//!
//! ```text
//! clients ─ cut, half-open, back elsewhere ─ process ─ real machines ─ Redis ─ process …
//!                                             killed, hung, slow, leaping, shut down     cut off, stalled, restarted
//! ```
//!
//! In worlds of *devices*, replicas run the real `DeviceSessions` around one store.
//!
//! One seed is one schedule. Time jumps from one event to the next. After every event an auditor that knows everything
//! judges what the replicas did; its invariants are listed in `calls/audit.rs` and `devices/audit.rs`. At the end
//! everything heals, and nothing may be left. A [`scenario`] says what a world is like and measures what its clients go
//! through.
//!
//! Tests break the machines on purpose, to show that the simulation would notice.

#![deny(clippy::iter_over_hash_type)]

mod agenda;
mod calls;
mod chance;
mod counts;
mod devices;
mod draws;
pub mod scenario;
mod time;
mod trace;
mod violation;

pub use calls::{ERRORS, Failure, Native, Report, RpcOutcomes, RuleMoment, Rules, STEPS, Schedule, Sweep, Swept};
pub use counts::Counts;
pub use devices::{NativeSettle, SettleOutcomes, SettleQuestion, SettleReport, SettleRules, settle};
pub use violation::Violation;
