//! Begins to follow the stream for a socket, and handles where the stream begins and what is lost of it.

use std::sync::Arc;

use socketioxide_core::Sid;

use super::followed_stream::{FollowedStream, Overrun};
use super::follower::{Follower, Gap};
use super::followers::{CatchUp, PendingFollower};
use super::offsets;
use crate::sockets::LocalNamespace;
use crate::transport::EntryId;

impl FollowedStream {
    /// Begins to follow for a socket. Returns the follower's serial number, and whether the recovery task must be started.
    pub(crate) fn follow(
        &self,
        namespace: &Arc<LocalNamespace>,
        socket: Sid,
        rooms: Vec<String>,
        from: Option<EntryId>,
        follower: Arc<dyn Follower>,
    ) -> (u64, bool) {
        let mut overrun = Overrun::default();
        let key = (namespace.number, socket);
        let mut order = self.order.lock();
        if self.is_alone && order.last.is_none() {
            order.last = Some(offsets::next_id(None));
        }
        order.begin(self.log_bounds);
        let since = order.last.unwrap_or_default();
        let pending = match (from, order.last) {
            (None, Some(at)) => {
                follower.began(at);
                None
            }
            (None, None) => Some(PendingFollower::Start),
            (Some(from), _) => Some(PendingFollower::CatchUp(CatchUp { from, rooms, since, deadline: None })),
        };
        let serial = self.followers.add(key, namespace.clone(), follower, pending);
        let mut must_recover = false;
        if let Some(from) = from
            && !self.try_settle(&order, key, from, &mut overrun)
        {
            must_recover = !std::mem::replace(&mut order.is_recovering, true);
            self.recovery_due.notify_one();
        }
        (serial, must_recover)
    }

    /// Ends following, unless the socket follows anew.
    pub(crate) fn unfollow(&self, key: (u64, Sid), serial: u64) {
        self.followers.remove(key, serial);
    }

    /// The reader has found the stream, and reads the entries after `at`.
    pub(super) fn handle_start(&self, at: EntryId) {
        let mut overrun = Overrun::default();
        let mut order = self.order.lock();
        order.last = Some(at);
        if order.is_wanted {
            order.begin(self.log_bounds);
        }
        for (key, followed, pending) in self.followers.all() {
            match pending {
                Some(PendingFollower::Start) if self.followers.settle(key).is_some() => followed.follower.began(at),
                Some(PendingFollower::CatchUp(catch_up)) => {
                    self.try_settle(&order, key, catch_up.from, &mut overrun);
                }
                _ => {}
            }
        }
        self.recovery_due.notify_one();
    }

    /// Entries were lost before this replica read them. It reads the entries after `at` from now on.
    pub(super) fn handle_lost_entries(&self, gap: Gap, at: EntryId) {
        let mut order = self.order.lock();
        order.last = Some(at);
        if gap == Gap::Unknown {
            self.followers.forget_seen();
        }
        if let Some(log) = &mut order.log {
            log.tear(at);
        }
        for (key, followed, pending) in self.followers.all() {
            match pending {
                Some(PendingFollower::Start) => {}
                // The client saw more than this replica read, so it may have seen the lost entries.
                Some(PendingFollower::CatchUp(catch_up)) if gap == Gap::Trimmed && catch_up.from > at => {}
                Some(PendingFollower::CatchUp(_)) => {
                    if self.followers.settle(key).is_some() {
                        followed.refuse(gap, Some(at));
                    }
                }
                None => followed.follower.gap(gap, Some(at)),
            }
        }
    }

    /// A namespace was opened, and the log did not keep its earlier broadcasts: restarts the log.
    pub(crate) fn handle_new_namespace(&self) {
        let mut order = self.order.lock();
        // A replica that shares no cluster has no earlier broadcasts.
        if let Some(log) = order.log.as_mut().filter(|_| !self.is_alone) {
            let at = log.last();
            log.restart(at);
        }
    }
}
