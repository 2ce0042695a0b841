//! The end of the stream as this replica knows it, and the sockets that follow it.
//!
//! One lock keeps the order. A follower gets the broadcasts that it missed and new broadcasts under this lock, so they cannot change
//! places.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::follower::Follower;
use super::followers::Followers;
use super::log::{Bounds, Position, StreamLog};
use crate::settings::Settings;
use crate::transport::EntryId;

/// The followed stream. It keeps nothing before the first follower comes.
pub(crate) struct FollowedStream {
    pub(super) order: Mutex<StreamOrder>,
    pub(super) followers: Followers,
    /// Wakes the recovery task.
    pub(super) recovery_due: Notify,
    pub(super) log_bounds: Bounds,
    /// How much one follower gets of what it missed.
    pub(super) recovered_max: Bounds,
    /// The replica shares no cluster, and makes its own offsets.
    pub(super) is_alone: bool,
}

/// What the lock protects.
#[derive(Default)]
pub(super) struct StreamOrder {
    /// The last entry that was read. `None` until the reader has found the stream.
    pub(super) last: Option<EntryId>,
    pub(super) log: Option<StreamLog>,
    /// A socket has followed at some time.
    pub(super) is_wanted: bool,
    /// The recovery task runs.
    pub(super) is_recovering: bool,
    /// How many entries were read.
    pub(super) entries_read: u64,
}

impl FollowedStream {
    pub(crate) fn new(settings: &Settings, is_alone: bool) -> Self {
        FollowedStream {
            order: Mutex::default(),
            followers: Followers::default(),
            recovery_due: Notify::new(),
            log_bounds: Bounds { entries_max: settings.log_entries_max.max(1), bytes_max: settings.log_bytes_max },
            recovered_max: Bounds { entries_max: settings.recover_events_max, bytes_max: settings.recover_bytes_max },
            is_alone,
        }
    }

    /// Whether a socket has followed at some time.
    pub(crate) fn has_begun(&self) -> bool {
        self.order.lock().is_wanted
    }
}

impl StreamOrder {
    /// Keeps what is read from now on.
    pub(super) fn begin(&mut self, bounds: Bounds) {
        self.is_wanted = true;
        if let (None, Some(at)) = (&self.log, self.last) {
            self.log = Some(StreamLog::new(at, bounds));
        }
    }

    /// Where an entry is, relative to the log.
    pub(super) fn position(&self, id: EntryId) -> Position {
        self.log.as_ref().map_or(Position::Ahead, |log| log.position(id))
    }
}

/// The followers that could not take a packet. [`Follower::overrun`] is called when this is dropped. It may do anything, so the lock
/// must be free: declare this before the guard of the lock.
#[derive(Default)]
#[must_use]
pub(super) struct Overrun(Vec<Arc<dyn Follower>>);

impl Overrun {
    pub(super) fn add(&mut self, follower: Option<Arc<dyn Follower>>) {
        self.0.extend(follower);
    }
}

impl Drop for Overrun {
    fn drop(&mut self) {
        for follower in self.0.drain(..) {
            metrics::counter!("adapter_followers_overrun_total").increment(1);
            follower.overrun();
        }
    }
}
