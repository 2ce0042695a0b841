//! The pure machines of Pointwork: who registered what on which replica, what becomes of an
//! rpc-call, and the native rules.
//!
//! Nothing here waits, reads a clock, draws a random number or does I/O. A machine takes an event and the moment it
//! happened (`handle_*`), says what is to be done (`next_command`) and when it wants to be woken (`poll_timeout`). The
//! host feeds it from sockets and timers, a simulation feeds the same machine from a seed.
//!
//! - [`switchboard`]: every rpc-call of a shard of users, from its arrival to its one answer. It names its invariants.
//! - [`directory`]: which socket registered which method, and the [`history`] of absences.
//! - [`roster`]: what this replica's own sockets registered, for the others; [`book`]: what the others announced; and
//!   the [`announcement`]s that go between them.
//! - [`decision`]: what a policy is asked and what it answers, as in `wit/policy.wit`.
//! - [`rules`]: the native defaults, which are the seeds' own rules.
//! - [`device`]: which socket of a device holds its session.
//! - [`experiment`]: two rules at once in one slot, which unit gets which, and what came of it.
//! - [`rollout`]: how the replicas of a cluster come to serve one policy.
//! - [`room`]: the names of Socket.IO rooms. [`time`]: the moments that machines are given.

#![forbid(unsafe_code)]
#![deny(clippy::iter_over_hash_type)]

pub mod announcement;
pub mod book;
pub mod call;
pub mod command;
pub mod decision;
pub mod device;
pub mod directory;
pub mod experiment;
pub mod fences;
pub mod history;
pub mod rollout;
pub mod room;
pub mod roster;
pub mod rules;
pub mod settings;
pub mod switchboard;
pub mod time;

pub use announcement::{Announced, Change, Numbered, Part, Snapshot};
pub use book::{Book, BookCommand, BookSettings};
pub use call::{Answer, AskId, CallId, CallRefused, SocketId};
pub use command::Command;
pub use device::{DeviceCommand, DeviceSettings, Sessions};
pub use directory::{Directory, Reach, RegisterError, RpcRoom};
pub use fences::{Fences, Session};
pub use roster::Roster;
pub use settings::Settings;
pub use switchboard::{Load, Switchboard};
pub use time::Time;
