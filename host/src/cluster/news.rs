//! What this replica learns of the others, and tells to the rooms that subscribe.

use pointwork_core::{PeerCommand, SocketId};

use super::notes::Resumed;

/// One piece of news. Subscribers hear each piece before the next one, in the order of arrival.
pub(crate) enum News<'a> {
    /// The link to Redis is up, or is lost.
    Link {
        /// Whether it is up.
        up: bool,
    },
    /// Something became known of a daemon of another replica.
    Daemons {
        /// What became known.
        command: &'a PeerCommand<String>,
        /// Finds the replica that a socket belongs to.
        owner: &'a dyn Fn(SocketId) -> Option<String>,
    },
    /// A replica began or ended its drain.
    Draining {
        /// Its number in this process.
        replica: u32,
        /// Whether it drains.
        is_draining: bool,
    },
    /// A daemon came back on another socket, at another replica.
    Resumed(&'a Resumed),
    /// Redis lost what it held.
    RedisEmptied,
    /// A replica's process has ended.
    ReplicaGone {
        /// The uid of the replica.
        peer: &'a str,
    },
}

/// Hears news. It must not block.
pub(super) type Subscriber = Box<dyn Fn(&News<'_>) + Send + Sync>;
