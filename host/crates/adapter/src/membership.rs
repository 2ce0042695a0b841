//! Tracks which other replicas of this kind exist and whether they are alive.

mod heartbeat;
mod listener;
mod peer_tracker;
mod peers;

pub(crate) use self::heartbeat::Heartbeat;
pub use self::listener::Listener;
pub(crate) use self::peer_tracker::PeerTracker;
pub(crate) use self::peers::{HeartbeatOutcome, Peers};
pub use self::peers::{Loss, PeerEvent};
