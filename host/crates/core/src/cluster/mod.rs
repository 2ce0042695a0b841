//! Tells the replicas of a cluster of each other's sockets and methods.
//!
//! - [`roster`]: what this replica's own sockets registered, numbered for the others.
//! - [`announcement`]: what replicas send each other: numbered changes, and snapshots in parts.
//! - [`peers`]: what the other replicas announced. It names its invariants.
//! - [`peer_command`]: what [`peers`] wants done, and its bounds.

pub mod announcement;
mod ownership;
mod partial_snapshot;
mod peer;
pub mod peer_command;
pub mod peers;
pub mod roster;

pub use announcement::{Announced, Change, Numbered, Part, Snapshot};
pub use peer::ASK_EVERY;
pub use peer_command::{BookCommand, BookSettings};
pub use peers::Book;
pub use roster::Roster;

#[cfg(test)]
mod tests;
