//! The other replicas: what this one tells them of its daemons, and what it hears of theirs.
//!
//! Every replica holds the whole directory, so finding a daemon is a local read. A replica numbers each change to its own daemons
//! ([`Roster`](pointwork_core::Announcer)) and sends it to all. What it hears goes into its [`Book`](pointwork_core::PeerDirectory), which feeds the
//! call machine. A lost message leaves a hole in the numbers, and then the replica asks that peer for a snapshot.

pub mod device_store;
mod ended_sessions;
mod hear;
mod news;
mod notes;
mod replicas;
pub(crate) mod scripts;
mod tell;
#[cfg(test)]
pub(crate) mod test_redis;

pub use self::replicas::Replicas;
pub(crate) use self::{news::News, notes::Resumed};
