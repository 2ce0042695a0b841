//! What single followers are handed: what they missed, or that it cannot be had; and what did not get into the stream.

use std::collections::HashSet;
use std::sync::Arc;

use socketioxide_core::{Sid, Value as Encoded};

use crate::event::Event;
use crate::follow::Gap;
use crate::followers::{CatchUp, Followed, Key, Pending};
use crate::lock::lock;
use crate::log::{Log, Missed, Place};
use crate::namespace::Namespace;
use crate::tail::{Order, Overrun, Tail};
use crate::transport::EntryId;
use crate::wire::Options;

/// A broadcast that may not get into the stream.
#[derive(Clone)]
pub(crate) struct Unsent {
    pub(crate) namespace: Arc<Namespace>,
    pub(crate) opts: Options,
    /// Without an offset, as the namespace's parser writes it.
    pub(crate) data: Encoded,
}

impl Tail {
    /// A follower that waits for what it missed gets it, if the log tells what that is; whether it waits no more.
    pub(crate) fn try_settle(&self, order: &Order, key: Key, from: EntryId, overrun: &mut Overrun) -> bool {
        let Some(log) = &order.log else { return false };
        let gap = match log.place(from) {
            Place::Within => {
                self.replay(log, key, overrun);
                return true;
            }
            Place::Before if self.is_alone && from >= log.start() => Gap::Trimmed,
            Place::Before | Place::Ahead if !self.is_alone => return false,
            Place::Nowhere | Place::Before | Place::Ahead => Gap::Unknown,
        };
        self.refuse(order, key, gap);
        true
    }

    /// A follower that waits for what it missed does not get it.
    pub(crate) fn refuse(&self, order: &Order, key: Key, gap: Gap) {
        let Some((followed, pending)) = self.followers.settle(key) else { return };
        match (pending, order.last) {
            // Nothing is known against its place, which is ahead of this replica: it must not be led back behind it.
            (Pending::CatchUp(catch_up), Some(last)) if gap == Gap::Unreachable && catch_up.from > last => {
                self.followers.set_seen(key, catch_up.from);
                refuse(&followed, gap, Some(catch_up.from));
            }
            _ => refuse(&followed, gap, order.last),
        }
    }

    fn replay(&self, log: &Log, key: Key, overrun: &mut Overrun) {
        let Some((followed, Pending::CatchUp(catch_up))) = self.followers.settle(key) else { return };
        let Some(local) = followed.namespace.local() else { return };
        let CatchUp { from, rooms, since, .. } = catch_up;
        let (namespace, socket) = key;
        let current = local.rooms(socket);
        let (before, later) = (with_own(&rooms, &socket), with_own(&current, &socket));
        let wanted = |id: EntryId, event: &Event| {
            event.namespace == namespace && event.is_for(if id <= since { &before } else { &later })
        };
        match log.missed(from, self.recovered_max, wanted) {
            Missed::TooMany => refuse(&followed, Gap::TooMany, Some(log.last())),
            Missed::Lost => refuse(&followed, Gap::Unreachable, Some(log.last())),
            Missed::Events(events) if events.iter().all(|event| local.send(&event.data, socket)) => {
                count("recovered");
                followed.follower.recovered(from, log.last());
            }
            Missed::Events(_) => {
                count("overrun");
                overrun.add(self.followers.cut(key));
            }
        }
    }

    /// A broadcast did not get into the stream, as far as is known: the sockets here that follow get it at once, and are told that
    /// what others sent may be missed. `false` if nobody ever followed.
    pub(crate) fn undelivered(&self, unsent: &Unsent) -> bool {
        let mut overrun = Overrun::default();
        let order = lock(&self.order);
        if order.log.is_none() && self.followers.is_empty() {
            return false;
        }
        let Some(local) = unsent.namespace.local() else { return true };
        for socket in local.select_followers(&unsent.opts) {
            let key = (unsent.namespace.number(), socket);
            if !local.send(&unsent.data, socket) {
                overrun.add(self.followers.cut(key));
            } else if let Some(follower) = self.followers.cut_off(key, order.read) {
                follower.gap(Gap::Unreachable, None);
            }
        }
        drop(order);
        true
    }
}

/// Tells a follower that it does not get what it missed.
pub(crate) fn refuse(followed: &Followed, gap: Gap, to: Option<EntryId>) {
    count(gap.name());
    followed.follower.gap(gap, to);
}

fn count(outcome: &'static str) {
    metrics::counter!("adapter_recoveries_total", "outcome" => outcome).increment(1);
}

/// Rooms, and the one of the socket's own id, where it is found whether or not it joined that.
fn with_own<'a>(rooms: &'a [String], socket: &'a Sid) -> HashSet<&'a str> {
    rooms.iter().map(String::as_str).chain([socket.as_str()]).collect()
}
