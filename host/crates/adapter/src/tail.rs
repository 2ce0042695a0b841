//! The stream's tail as a replica knows it, and what its followers get of it. One lock keeps the order: what a follower missed and what
//! is new cannot change places, for both are handed over under it.

use std::sync::{Arc, Mutex};

use socketioxide_core::Sid;
use tokio::sync::Notify;

use crate::alone;
use crate::cluster::Inner;
use crate::follow::{Follower, Gap};
use crate::followers::{CatchUp, Followers, Pending};
use crate::lock::lock;
use crate::log::{Bounds, Log, Place};
use crate::namespace::Namespace;
use crate::recovery;
use crate::replay::refuse;
use crate::settings::Settings;
use crate::transport::EntryId;

/// The tail. Nothing is kept before the first follower comes.
pub(crate) struct Tail {
    pub(crate) order: Mutex<Order>,
    pub(crate) followers: Followers,
    /// The recovery's task has something new to look at.
    pub(crate) is_due: Notify,
    pub(crate) bounds: Bounds,
    /// What one follower is sent at most of what it missed.
    pub(crate) recovered_max: Bounds,
    pub(crate) is_alone: bool,
}

/// What the lock guards.
#[derive(Default)]
pub(crate) struct Order {
    /// The last entry that was read; unknown until the reader has found the stream.
    pub(crate) last: Option<EntryId>,
    pub(crate) log: Option<Log>,
    /// Somebody followed.
    is_wanted: bool,
    /// The recovery's task runs.
    pub(crate) is_recovering: bool,
    /// How many entries were read.
    pub(crate) read: u64,
}

/// Those that are to be cut off, which is done when the lock is free: it may do anything.
#[derive(Default)]
#[must_use]
pub(crate) struct Overrun(Vec<Arc<dyn Follower>>);

impl Overrun {
    pub(crate) fn add(&mut self, follower: Option<Arc<dyn Follower>>) {
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

impl Tail {
    pub(crate) fn new(settings: &Settings, is_alone: bool) -> Self {
        let bounds = Bounds { entries_max: settings.log_entries_max.max(1), bytes_max: settings.log_bytes_max };
        Tail {
            order: Mutex::default(),
            followers: Followers::default(),
            is_due: Notify::new(),
            bounds,
            recovered_max: Bounds { entries_max: settings.recover_events_max, bytes_max: settings.recover_bytes_max },
            is_alone,
        }
    }

    /// Whether anybody ever followed.
    pub(crate) fn has_begun(&self) -> bool {
        lock(&self.order).is_wanted
    }

    /// Begins to follow for a socket; gives the follower's serial number.
    pub(crate) fn follow(
        &self,
        inner: &Arc<Inner>,
        namespace: &Arc<Namespace>,
        socket: Sid,
        rooms: Vec<String>,
        from: Option<EntryId>,
        follower: Arc<dyn Follower>,
    ) -> u64 {
        let mut overrun = Overrun::default();
        let key = (namespace.number(), socket);
        let mut order = lock(&self.order);
        if self.is_alone && order.last.is_none() {
            order.last = Some(alone::next_id(None));
        }
        order.begin(self.bounds);
        let since = order.last.unwrap_or_default();
        let pending = match (from, order.last) {
            (None, Some(at)) => {
                follower.began(at);
                None
            }
            (None, None) => Some(Pending::Start),
            (Some(from), _) => Some(Pending::CatchUp(CatchUp { from, rooms, since, deadline: None })),
        };
        let serial = self.followers.add(key, namespace.clone(), follower, pending);
        if let Some(from) = from
            && !self.try_settle(&order, key, from, &mut overrun)
        {
            if !std::mem::replace(&mut order.is_recovering, true) {
                tokio::spawn(recovery::run(inner.clone()));
            }
            self.is_due.notify_one();
        }
        drop(order);
        serial
    }

    /// The reader has found the stream, and reads what is behind `at`.
    pub(crate) fn start(&self, at: EntryId) {
        let mut overrun = Overrun::default();
        let mut order = lock(&self.order);
        order.last = Some(at);
        if order.is_wanted {
            order.begin(self.bounds);
        }
        for (key, followed, pending) in self.followers.all() {
            match pending {
                Some(Pending::Start) if self.followers.settle(key).is_some() => followed.follower.began(at),
                Some(Pending::CatchUp(catch_up)) => {
                    self.try_settle(&order, key, catch_up.from, &mut overrun);
                }
                _ => {}
            }
        }
        self.is_due.notify_one();
        drop(order);
    }

    /// Entries were lost before they were read; what is behind `at` is read from now on.
    pub(crate) fn lost(&self, gap: Gap, at: EntryId) {
        let mut order = lock(&self.order);
        order.last = Some(at);
        if gap == Gap::Unknown {
            self.followers.forget_seen();
        }
        if let Some(log) = &mut order.log {
            log.tear(at);
        }
        for (key, followed, pending) in self.followers.all() {
            match pending {
                Some(Pending::Start) => {}
                // It saw more than this replica: what was lost may not concern it.
                Some(Pending::CatchUp(catch_up)) if gap == Gap::Trimmed && catch_up.from > at => {}
                Some(Pending::CatchUp(_)) => {
                    if self.followers.settle(key).is_some() {
                        refuse(&followed, gap, Some(at));
                    }
                }
                None => followed.follower.gap(gap, Some(at)),
            }
        }
    }

    /// The content of earlier entries may be needed that was not kept: a namespace was opened.
    pub(crate) fn forget(&self) {
        let mut order = lock(&self.order);
        // A replica that is alone knows all that there was.
        if let Some(log) = order.log.as_mut().filter(|_| !self.is_alone) {
            let at = log.last();
            log.restart(at);
        }
    }
}

impl Order {
    /// What is read from now on is kept.
    fn begin(&mut self, bounds: Bounds) {
        self.is_wanted = true;
        if let (None, Some(at)) = (&self.log, self.last) {
            self.log = Some(Log::new(at, bounds));
        }
    }

    /// Where an entry is in what is kept.
    pub(crate) fn place(&self, from: EntryId) -> Place {
        self.log.as_ref().map_or(Place::Ahead, |log| log.place(from))
    }
}
