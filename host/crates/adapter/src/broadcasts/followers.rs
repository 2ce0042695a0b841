//! The table of sockets that follow the stream.
//!
//! Its lock is never held during a call into other code. The guard of a follower may be dropped anywhere, also under locks of
//! socketioxide.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use socketioxide_core::Sid;
use tokio::time::Instant;

use super::follower::{Follower, Gap};
use crate::sockets::LocalNamespace;
use crate::transport::EntryId;

/// The number of a namespace and one of its sockets.
pub(crate) type FollowerKey = (u64, Sid);

/// The table. Each socket of a namespace has at most one entry.
#[derive(Default)]
pub(super) struct Followers {
    table: Mutex<FollowerTable>,
    serials: AtomicU64,
}

#[derive(Default)]
struct FollowerTable {
    followed: HashMap<FollowerKey, FollowedSocket>,
    /// Why some of them do not get new broadcasts yet.
    pending: HashMap<FollowerKey, PendingFollower>,
}

/// A socket that follows the stream.
#[derive(Clone)]
pub(super) struct FollowedSocket {
    pub(super) namespace: Arc<LocalNamespace>,
    pub(super) follower: Arc<dyn Follower>,
    serial: u64,
    /// The last entry that its client has seen, if this replica has not read that far. The socket gets no entry up to it.
    seen: EntryId,
    /// How many entries were read when the follower was last told that the stream cannot be reached.
    cut_off_at: Option<u64>,
}

/// Why a follower does not get new broadcasts yet.
#[derive(Clone)]
pub(super) enum PendingFollower {
    /// The reader has not found the stream yet.
    Start,
    /// It must first get what it missed.
    CatchUp(CatchUp),
}

/// What a follower missed.
#[derive(Clone)]
pub(super) struct CatchUp {
    /// The last entry that its client saw.
    pub(super) from: EntryId,
    /// Its rooms when it began to follow. They decide about entries up to `since`, and its current rooms about later ones.
    pub(super) rooms: Vec<String>,
    pub(super) since: EntryId,
    /// Until when it waits for the reader to reach an entry that the stream has.
    pub(super) deadline: Option<Instant>,
}

impl Followers {
    /// Adds a follower, or replaces the former one of the same socket. Returns its serial number.
    pub(super) fn add(
        &self,
        key: FollowerKey,
        namespace: Arc<LocalNamespace>,
        follower: Arc<dyn Follower>,
        pending: Option<PendingFollower>,
    ) -> u64 {
        let serial = self.serials.fetch_add(1, Ordering::Relaxed);
        let followed = FollowedSocket { namespace, follower, serial, seen: EntryId::default(), cut_off_at: None };
        let mut table = self.table.lock();
        let former = table.followed.insert(key, followed);
        match pending {
            Some(pending) => table.pending.insert(key, pending),
            None => table.pending.remove(&key),
        };
        drop(table);
        drop(former);
        serial
    }

    /// Removes a follower, unless another one has replaced it.
    pub(super) fn remove(&self, key: FollowerKey, serial: u64) {
        let mut table = self.table.lock();
        let is_current = table.followed.get(&key).is_some_and(|followed| followed.serial == serial);
        let removed = is_current.then(|| (table.followed.remove(&key), table.pending.remove(&key)));
        drop(table);
        drop(removed);
    }

    /// Removes the follower of a socket that could not take a packet.
    pub(super) fn cut(&self, key: FollowerKey) -> Option<Arc<dyn Follower>> {
        let mut table = self.table.lock();
        table.pending.remove(&key);
        table.followed.remove(&key).map(|followed| followed.follower)
    }

    /// The serial number of the next follower.
    pub(super) fn next_serial(&self) -> u64 {
        self.serials.load(Ordering::Relaxed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.lock().followed.is_empty()
    }

    /// A client has seen an entry that this replica has not read yet.
    pub(super) fn set_seen(&self, key: FollowerKey, seen: EntryId) {
        if let Some(followed) = self.table.lock().followed.get_mut(&key) {
            followed.seen = seen;
        }
    }

    /// The stream was replaced by another one: the entries that clients saw are not in it.
    pub(super) fn forget_seen(&self) {
        self.table.lock().followed.values_mut().for_each(|followed| followed.seen = EntryId::default());
    }

    /// Those of the sockets that get a new entry.
    pub(super) fn live(&self, namespace: u64, sockets: Vec<Sid>, id: EntryId) -> Vec<Sid> {
        let table = self.table.lock();
        let is_live = |key: &FollowerKey| {
            table.followed.get(key).is_some_and(|followed| followed.seen < id) && !table.pending.contains_key(key)
        };
        sockets.into_iter().filter(|sid| is_live(&(namespace, *sid))).collect()
    }

    /// All followers, each with what it waits for.
    pub(super) fn all(&self) -> Vec<(FollowerKey, FollowedSocket, Option<PendingFollower>)> {
        let table = self.table.lock();
        let all = table.followed.iter();
        all.map(|(key, followed)| (*key, followed.clone(), table.pending.get(key).cloned())).collect()
    }

    /// The followers that wait for what they missed: the entry they saw last, their deadline for the reader, their serial number.
    pub(super) fn catching_up(&self) -> Vec<(FollowerKey, EntryId, Option<Instant>, u64)> {
        let table = self.table.lock();
        let catching_up = table.pending.iter().filter_map(|(key, pending)| match pending {
            PendingFollower::CatchUp(catch_up) => {
                Some((*key, catch_up.from, catch_up.deadline, table.followed.get(key)?.serial))
            }
            PendingFollower::Start => None,
        });
        catching_up.collect()
    }

    /// Sets until when a follower waits for the reader.
    pub(super) fn set_deadline(&self, key: FollowerKey, deadline: Instant) {
        if let Some(PendingFollower::CatchUp(catch_up)) = self.table.lock().pending.get_mut(&key) {
            catch_up.deadline = Some(deadline);
        }
    }

    /// The follower gets new broadcasts from now on. Returns what it waited for. `None` if it is gone, or waited for nothing.
    pub(super) fn settle(&self, key: FollowerKey) -> Option<(FollowedSocket, PendingFollower)> {
        let mut table = self.table.lock();
        let pending = table.pending.remove(&key)?;
        Some((table.followed.get(&key)?.clone(), pending))
    }

    /// Returns the follower if it must be told that the stream cannot be reached: once, until more entries are read.
    pub(super) fn note_cut_off(&self, key: FollowerKey, read: u64) -> Option<Arc<dyn Follower>> {
        let mut table = self.table.lock();
        let followed = table.followed.get_mut(&key)?;
        (followed.cut_off_at.replace(read) != Some(read)).then(|| followed.follower.clone())
    }
}

impl FollowedSocket {
    /// Tells the follower that it does not get what it missed.
    pub(super) fn refuse(&self, gap: Gap, to: Option<EntryId>) {
        count_recovery(gap.name());
        self.follower.gap(gap, to);
    }
}

/// Counts how the recovery of a follower ended.
pub(super) fn count_recovery(outcome: &'static str) {
    metrics::counter!("adapter_recoveries_total", "outcome" => outcome).increment(1);
}
