//! Begins and ends following the stream for a socket.

use std::fmt;
use std::sync::{Arc, Weak};

use socketioxide_core::Sid;

use super::namespace::Namespace;
use crate::broadcasts::{FollowedStream, Follower, FollowerKey, recover};
use crate::transport::EntryId;

/// Follows the stream for a socket, until it is dropped.
#[must_use = "dropping it ends it at once"]
pub struct Following {
    followed: Weak<FollowedStream>,
    key: FollowerKey,
    serial: u64,
}

impl Namespace {
    /// Follows the stream for a local socket until the returned guard is dropped. The socket must be in
    /// [`FOLLOWERS_ROOM`](crate::FOLLOWERS_ROOM), and must be connected: socketioxide drops packets to a socket whose middleware is
    /// still running.
    ///
    /// `from` is the last offset that the client saw, and `rooms` are the rooms of the socket at this moment. The socket gets what it
    /// missed, then everything new, in the order of the stream. Each broadcast has its entry's id as additional last argument. The
    /// socket's buffer must have room for [`recover_events_max`](crate::Settings::recover_events_max) packets. Call it inside a tokio
    /// runtime.
    pub fn follow(
        &self,
        socket: Sid,
        rooms: Vec<String>,
        from: Option<EntryId>,
        follower: Arc<dyn Follower>,
    ) -> Following {
        let followed = &self.replica.followed;
        let (serial, must_recover) = followed.follow(&self.local, socket, rooms, from, follower);
        if must_recover && let Some(link) = &self.replica.link {
            tokio::spawn(recover(link.source.clone()));
        }
        Following { followed: Arc::downgrade(followed), key: (self.local.number, socket), serial }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if let Some(followed) = self.followed.upgrade() {
            followed.unfollow(self.key, self.serial);
        }
    }
}

impl fmt::Debug for Following {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Following").field("socket", &self.key.1).finish_non_exhaustive()
    }
}
