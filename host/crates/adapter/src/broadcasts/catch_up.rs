//! Sends single followers the broadcasts that they missed, or tells them that they cannot get them.

use std::collections::HashSet;
use std::sync::Arc;

use socketioxide_core::{Sid, Value as Encoded};

use super::event::FollowedEvent;
use super::followed_stream::{FollowedStream, Overrun, StreamOrder};
use super::follower::Gap;
use super::followers::{CatchUp, FollowerKey, PendingFollower, count_recovery};
use super::log::{Missed, Position, StreamLog};
use crate::sockets::LocalNamespace;
use crate::transport::EntryId;
use crate::wire::Options;

/// A broadcast that may not get into the stream.
pub(crate) struct UnsentBroadcast {
    pub(crate) namespace: Arc<LocalNamespace>,
    pub(crate) opts: Options,
    /// The event without an offset, encoded by the namespace's parser.
    pub(crate) data: Encoded,
}

impl FollowedStream {
    /// Sends a follower what it missed, or refuses it, if the log is enough to decide. Returns whether the follower waits no more.
    pub(super) fn try_settle(
        &self,
        order: &StreamOrder,
        key: FollowerKey,
        from: EntryId,
        overrun: &mut Overrun,
    ) -> bool {
        let Some(log) = &order.log else { return false };
        let gap = match log.position(from) {
            Position::Within => {
                self.replay(log, key, overrun);
                return true;
            }
            Position::Before if self.is_alone && from >= log.start() => Gap::Trimmed,
            Position::Before | Position::Ahead if !self.is_alone => return false,
            Position::Unknown | Position::Before | Position::Ahead => Gap::Unknown,
        };
        self.refuse(order, key, gap);
        true
    }

    /// Tells a waiting follower that it does not get what it missed.
    pub(super) fn refuse(&self, order: &StreamOrder, key: FollowerKey, gap: Gap) {
        let Some((followed, pending)) = self.followers.settle(key) else { return };
        match (pending, order.last) {
            // Its offset may be valid although this replica has not read that far, so it must not be set back.
            (PendingFollower::CatchUp(catch_up), Some(last)) if gap == Gap::Unreachable && catch_up.from > last => {
                self.followers.set_seen(key, catch_up.from);
                followed.refuse(gap, Some(catch_up.from));
            }
            _ => followed.refuse(gap, order.last),
        }
    }

    fn replay(&self, log: &StreamLog, key: FollowerKey, overrun: &mut Overrun) {
        let Some((followed, PendingFollower::CatchUp(catch_up))) = self.followers.settle(key) else { return };
        let Some(sockets) = followed.namespace.sockets() else { return };
        let CatchUp { from, rooms, since, .. } = catch_up;
        let (namespace, socket) = key;
        let current = sockets.rooms(socket);
        let (before, later) = (with_own_room(&rooms, &socket), with_own_room(&current, &socket));
        let wanted = |id: EntryId, event: &FollowedEvent| {
            event.namespace == namespace && event.is_for(if id <= since { &before } else { &later })
        };
        match log.missed(from, self.recovered_max, wanted) {
            Missed::TooMany => followed.refuse(Gap::TooMany, Some(log.last())),
            Missed::Lost => followed.refuse(Gap::Unreachable, Some(log.last())),
            Missed::Events(events) if events.iter().all(|event| sockets.send(&event.data, socket)) => {
                count_recovery("recovered");
                followed.follower.recovered(from, log.last());
            }
            Missed::Events(_) => {
                count_recovery("overrun");
                overrun.add(self.followers.cut(key));
            }
        }
    }

    /// A broadcast did not get into the stream as far as this replica knows. Sends it to the followers here at once, and tells them
    /// that they may miss broadcasts of other replicas. Returns `false` if no socket ever followed.
    pub(crate) fn handle_unsent_broadcast(&self, unsent: &UnsentBroadcast) -> bool {
        let mut overrun = Overrun::default();
        let order = self.order.lock();
        if order.log.is_none() && self.followers.is_empty() {
            return false;
        }
        let Some(sockets) = unsent.namespace.sockets() else { return true };
        for socket in sockets.select_followers(&unsent.opts) {
            let key = (unsent.namespace.number, socket);
            if !sockets.send(&unsent.data, socket) {
                overrun.add(self.followers.cut(key));
            } else if let Some(follower) = self.followers.note_cut_off(key, order.entries_read) {
                follower.gap(Gap::Unreachable, None);
            }
        }
        true
    }
}

/// The rooms, and the room of the socket's own id, whether or not the socket joined it.
fn with_own_room<'a>(rooms: &'a [String], socket: &'a Sid) -> HashSet<&'a str> {
    rooms.iter().map(String::as_str).chain([socket.as_str()]).collect()
}
