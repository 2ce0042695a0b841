//! Sockets that follow the stream: each broadcast comes with its offset, and what they missed is theirs.
//!
//! A client that tells the last offset it saw gets all that its rooms got since, on any replica, from the last entries that each one
//! keeps, or from Redis where it was away for longer: one sweep for all who wait.

use std::fmt;
use std::sync::{Arc, Weak};

use socketioxide_core::Sid;

use crate::cluster::Inner;
use crate::followers::Key;
use crate::namespace::Namespace;
use crate::transport::EntryId;

/// The room that a socket joins before any other (in the namespace's middleware) if it is to be followed: what comes by the stream
/// then reaches it by its [`Following`] alone.
pub const FOLLOWERS_ROOM: &str = "#followers#";

/// Whom the stream is followed for. All but `overrun` is called under the lock of the log, so that it comes at its place between the
/// broadcasts: it is to be quick, must not block, and must neither broadcast nor follow.
pub trait Follower: Send + Sync + 'static {
    /// It was to begin where the stream stands: it misses nothing from `at` on.
    fn began(&self, at: EntryId);

    /// What it missed behind `from` was handed over, up to `to`; what is new comes next.
    fn recovered(&self, from: EntryId, to: EntryId);

    /// Broadcasts were missed that it cannot get. It goes on behind `to`, or, when that is `None`, with what comes next. Told instead of
    /// `recovered`, and later whenever this replica itself missed entries.
    ///
    /// [`Gap::Unreachable`] is told of a broadcast that did not get into the stream as far as its sender knows, after it was handed over
    /// without an offset. If it did, it comes again with one.
    fn gap(&self, gap: Gap, to: Option<EntryId>);

    /// A packet could not be handed to the socket: nothing more comes, and it must be cut off, so that it comes back and recovers.
    fn overrun(&self);
}

/// Why broadcasts cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gap {
    /// The stream does not reach back so far any more.
    Trimmed,
    /// It has no such entry: it was emptied, or is another one.
    Unknown,
    /// They are more than a socket is sent at once.
    TooMany,
    /// Redis cannot be read, or written.
    Unreachable,
}

impl Gap {
    /// Its name: `trimmed`, `unknown`, `too-many` or `unreachable`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Gap::Trimmed => "trimmed",
            Gap::Unknown => "unknown",
            Gap::TooMany => "too-many",
            Gap::Unreachable => "unreachable",
        }
    }
}

/// The stream is followed for a socket. Dropping it ends that.
#[must_use = "dropping it ends it at once"]
pub struct Following {
    inner: Weak<Inner>,
    key: Key,
    serial: u64,
}

impl Namespace {
    /// Follows the stream for a local socket until what is returned is dropped. The socket is in [`FOLLOWERS_ROOM`], and connected:
    /// socketioxide drops what is sent to one whose middleware still runs.
    ///
    /// `rooms` is what it is in, for what it missed behind `from`. What it missed, then everything new, is delivered to it in the
    /// stream's order, each with its entry's id as additional last argument. The socket's buffer must have room for
    /// [`recover_events_max`](crate::Settings::recover_events_max) packets. To be called inside a tokio runtime.
    pub fn follow(
        self: &Arc<Self>,
        socket: Sid,
        rooms: Vec<String>,
        from: Option<EntryId>,
        follower: Arc<dyn Follower>,
    ) -> Following {
        let key = (self.number(), socket);
        let inner = self.inner();
        let serial = inner.map_or(0, |inner| inner.tail.follow(&inner, self, socket, rooms, from, follower));
        Following { inner: self.weak_inner(), key, serial }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.upgrade() {
            inner.tail.followers.remove(self.key, self.serial);
        }
    }
}

impl fmt::Debug for Following {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Following").field("socket", &self.key.1).finish_non_exhaustive()
    }
}
