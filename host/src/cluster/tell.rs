//! Tells the other replicas what happens here.

use std::sync::{Arc, atomic::Ordering};

use pointwork_core::{Announcer, SocketId, cluster::NumberedChange, decisions::Departure};

use super::{
    notes::{self, Resumed},
    replicas::Replicas,
};

/// The size of one part of a snapshot, in bytes. A part may be a little larger.
const PART_BYTES: usize = 256 << 10;

impl Replicas {
    /// A socket of this replica registered a method; `resumable`: it can hand in a result after a reconnect.
    pub(crate) fn joined(&self, socket: SocketId, user: &Arc<str>, resumable: bool, method: &Arc<str>) {
        let now = self.clock.now();
        self.announce(|roster| roster.join(socket, user.clone(), resumable, method.clone(), now));
    }

    /// A socket of this replica took a method back.
    pub(crate) fn left(&self, socket: SocketId, method: &Arc<str>) {
        self.announce(|roster| roster.leave(socket, method));
    }

    /// A socket of this replica is gone.
    pub(crate) fn gone(&self, socket: SocketId, cause: Departure) {
        self.announce(|roster| roster.gone(socket, cause));
    }

    /// A daemon is back on a socket of this replica, and goes on with its calls.
    pub(crate) fn resumed(&self, resumed: &Resumed) {
        if self.cluster.is_alone() {
            return;
        }
        if let Err(error) = self.cluster.note(None, notes::RESUMED, notes::from_resumed(resumed)) {
            tracing::warn!(%error, "other replicas were not told that a daemon is back");
        }
    }

    /// Tells the others that there is news of policies in Redis.
    pub(crate) fn tell_policy_news(&self) {
        if let Err(error) = self.cluster.note(None, notes::POLICY, rmpv::Value::Nil) {
            // They look once a second.
            tracing::debug!(%error, "other replicas were not told of policies");
        }
    }

    /// This replica changed the experiments.
    pub(crate) fn experiments_changed(&self) {
        if self.cluster.is_alone() {
            return;
        }
        if let Err(error) = self.cluster.note(None, notes::EXPERIMENTS, rmpv::Value::Nil) {
            tracing::debug!(%error, "other replicas find out for themselves that experiments were changed");
        }
    }

    /// Tells all peers that this replica drains: its daemons want no more calls.
    pub(crate) fn leaving(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
        self.say_leaving(None);
    }

    pub(super) fn say_leaving(&self, peer: Option<&str>) {
        if let Err(error) = self.cluster.note(peer, notes::LEAVING, rmpv::Value::Nil) {
            tracing::warn!(%error, "other replicas do not know that this one shuts down");
        }
    }

    /// Whether every peer knows that this replica drains, so that no call is on its way here.
    pub(crate) fn is_leaving_known(&self) -> bool {
        let peers = self.cluster.peers();
        let noted = self.noted.lock();
        peers.iter().all(|peer| noted.contains(peer))
    }

    /// Sends a change to all. Holds the roster until it is handed over, so that changes leave in the order of their numbers.
    fn announce(&self, change: impl FnOnce(&mut Announcer) -> Option<NumberedChange>) {
        if self.cluster.is_alone() {
            return;
        }
        let mut roster = self.roster.lock();
        if let Some(numbered) = change(&mut roster)
            && let Err(error) = self.cluster.note(None, notes::CHANGE, notes::from_change(&numbered))
        {
            // The next heartbeat shows the hole.
            tracing::warn!(%error, "other replicas were not told of a change");
        }
    }

    /// Sends a peer a snapshot of this replica's daemons. Changes wait until it is handed over.
    pub(super) fn tell_all(&self, peer: &str) {
        let roster = self.roster.lock();
        for part in roster.snapshot(self.clock.now()).into_parts(PART_BYTES) {
            if let Err(error) = self.cluster.note(Some(peer), notes::PART, notes::from_part(&part)) {
                tracing::warn!(%error, peer, "a peer was not told this replica's daemons: it will ask again");
                return;
            }
        }
        // The peer may have come after the announcement.
        if self.is_leaving.load(Ordering::Relaxed) {
            self.say_leaving(Some(peer));
        }
    }
}
