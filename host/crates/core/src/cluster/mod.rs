//! Tells the replicas of a cluster of each other's sockets and methods.
//!
//! - [`announcer`]: what this replica's own sockets registered, numbered for the others.
//! - [`announcement`]: what replicas send each other: numbered changes, and snapshots in parts.
//! - [`peer_directory`]: what the other replicas announced. It names its invariants.
//! - [`peer_command`]: what the directory of peers wants done, and its bounds.

pub mod announcement;
pub mod announcer;
mod ownership;
mod partial_snapshot;
mod peer;
pub mod peer_command;
pub mod peer_directory;

pub use announcement::{AnnouncedSocket, NumberedChange, Snapshot, SnapshotPart, SocketChange};
pub use announcer::Announcer;
pub use peer::ASK_EVERY;
pub use peer_command::{PeerCommand, PeerSettings};
pub use peer_directory::PeerDirectory;

#[cfg(test)]
mod tests;
