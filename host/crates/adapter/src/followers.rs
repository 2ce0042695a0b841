//! The sockets that follow the stream. Its lock is held for no call to anything else: a socket's guard may be dropped wherever the
//! socket is, also where socketioxide's own locks are held.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use socketioxide_core::Sid;
use tokio::time::Instant;

use crate::follow::Follower;
use crate::lock::lock;
use crate::namespace::Namespace;
use crate::transport::EntryId;

/// A namespace's number and a socket of it.
pub(crate) type Key = (u64, Sid);

/// The table. There is one entry at most for each socket of a namespace.
#[derive(Default)]
pub(crate) struct Followers {
    table: Mutex<Table>,
    serials: AtomicU64,
}

#[derive(Default)]
struct Table {
    followed: HashMap<Key, Followed>,
    /// Those that get nothing live yet.
    pending: HashMap<Key, Pending>,
}

/// Whom the stream is followed for.
#[derive(Clone)]
pub(crate) struct Followed {
    pub(crate) namespace: Arc<Namespace>,
    pub(crate) follower: Arc<dyn Follower>,
    serial: u64,
    /// The last entry that its client is known to have seen, if that is ahead of this replica: it gets none up to there.
    seen: EntryId,
    /// How much had been read when it was told last that the stream cannot be reached.
    cut_off_at: Option<u64>,
}

/// Why a follower gets nothing live yet.
#[derive(Clone)]
pub(crate) enum Pending {
    /// It is not known where the stream stands.
    Start,
    /// It is to get first what it missed.
    CatchUp(CatchUp),
}

/// What a follower missed, in question.
#[derive(Clone)]
pub(crate) struct CatchUp {
    /// The last entry that its client saw.
    pub(crate) from: EntryId,
    /// What it was in when it began to follow, which counts up to `since`; later, what it is in counts.
    pub(crate) rooms: Vec<String>,
    pub(crate) since: EntryId,
    /// Until when it waits for the reader to come to an entry that the stream has.
    pub(crate) deadline: Option<Instant>,
}

impl Followers {
    /// Adds one, or puts it in the place of the socket's former one; gives its serial number.
    pub(crate) fn add(
        &self,
        key: Key,
        namespace: Arc<Namespace>,
        follower: Arc<dyn Follower>,
        pending: Option<Pending>,
    ) -> u64 {
        let serial = self.serials.fetch_add(1, Ordering::Relaxed);
        let followed = Followed { namespace, follower, serial, seen: EntryId::default(), cut_off_at: None };
        let mut table = lock(&self.table);
        let former = table.followed.insert(key, followed);
        match pending {
            Some(pending) => table.pending.insert(key, pending),
            None => table.pending.remove(&key),
        };
        drop(table);
        drop(former);
        serial
    }

    /// Ends it, unless another one took its place.
    pub(crate) fn remove(&self, key: Key, serial: u64) {
        let mut table = lock(&self.table);
        let is_it = table.followed.get(&key).is_some_and(|followed| followed.serial == serial);
        let removed = is_it.then(|| (table.followed.remove(&key), table.pending.remove(&key)));
        drop(table);
        drop(removed);
    }

    /// Ends what follows for a socket that could not take a packet.
    pub(crate) fn cut(&self, key: Key) -> Option<Arc<dyn Follower>> {
        let mut table = lock(&self.table);
        table.pending.remove(&key);
        table.followed.remove(&key).map(|followed| followed.follower)
    }

    /// The serial number that the next one gets.
    pub(crate) fn next_serial(&self) -> u64 {
        self.serials.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.table).followed.is_empty()
    }

    /// A follower has seen what this replica has not read yet.
    pub(crate) fn set_seen(&self, key: Key, seen: EntryId) {
        if let Some(followed) = lock(&self.table).followed.get_mut(&key) {
            followed.seen = seen;
        }
    }

    /// Ids begin anew: what was seen of another stream is no place in this one.
    pub(crate) fn forget_seen(&self) {
        lock(&self.table).followed.values_mut().for_each(|followed| followed.seen = EntryId::default());
    }

    /// Those of these sockets that get an entry that is new.
    pub(crate) fn live(&self, namespace: u64, sockets: Vec<Sid>, id: EntryId) -> Vec<Sid> {
        let table = lock(&self.table);
        let is_live = |key: &Key| {
            table.followed.get(key).is_some_and(|followed| followed.seen < id) && !table.pending.contains_key(key)
        };
        sockets.into_iter().filter(|sid| is_live(&(namespace, *sid))).collect()
    }

    /// All, each with what it waits for.
    pub(crate) fn all(&self) -> Vec<(Key, Followed, Option<Pending>)> {
        let table = lock(&self.table);
        let all = table.followed.iter();
        all.map(|(key, followed)| (*key, followed.clone(), table.pending.get(key).cloned())).collect()
    }

    /// Those that wait for what they missed: which entry they saw last, until when they wait for the reader, their serial number.
    pub(crate) fn catching_up(&self) -> Vec<(Key, EntryId, Option<Instant>, u64)> {
        let table = lock(&self.table);
        let catching_up = table.pending.iter().filter_map(|(key, pending)| match pending {
            Pending::CatchUp(catch_up) => {
                Some((*key, catch_up.from, catch_up.deadline, table.followed.get(key)?.serial))
            }
            Pending::Start => None,
        });
        catching_up.collect()
    }

    /// Sets until when one waits for the reader.
    pub(crate) fn set_deadline(&self, key: Key, deadline: Instant) {
        if let Some(Pending::CatchUp(catch_up)) = lock(&self.table).pending.get_mut(&key) {
            catch_up.deadline = Some(deadline);
        }
    }

    /// It gets what is new from now on; gives what it waited for. `None` if it is gone, or waited for nothing.
    pub(crate) fn settle(&self, key: Key) -> Option<(Followed, Pending)> {
        let mut table = lock(&self.table);
        let pending = table.pending.remove(&key)?;
        Some((table.followed.get(&key)?.clone(), pending))
    }

    /// Whether one is to be told that the stream cannot be reached: once until more is read than so much.
    pub(crate) fn cut_off(&self, key: Key, read: u64) -> Option<Arc<dyn Follower>> {
        let mut table = lock(&self.table);
        let followed = table.followed.get_mut(&key)?;
        (followed.cut_off_at.replace(read) != Some(read)).then(|| followed.follower.clone())
    }
}
