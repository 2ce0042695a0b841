//! Sessions that ended, on whichever replica: a late sign of life does not bring them back.

use pointwork_core::UserSession;

use super::{notes, replicas::Replicas};
use crate::{config::ID_BYTES_MAX, driver::clock::unix_ms};

/// How many ends are told in one note.
const NOTE_ENDS: usize = 1_000;

impl Replicas {
    /// A session ended, as its client says at `time_ms` since the Unix epoch. All replicas are told.
    pub(crate) fn session_ended(&self, session: UserSession, time_ms: u64) {
        self.fences.lock().end(session.clone(), time_ms, unix_ms());
        self.tell_ended(None, notes::from_ends(std::iter::once((&session, time_ms))));
    }

    /// Whether a sign of life of a session counts: it was given after the session's last end.
    pub(crate) fn session_lives(&self, session: &UserSession, time_ms: u64) -> bool {
        self.fences.lock().admits(session, time_ms)
    }

    /// Tells a peer that has just come all ends that it has missed.
    pub(super) fn tell_ends(&self, peer: &str) {
        let fences = self.fences.lock();
        let ends: Vec<_> = fences.all().collect();
        for ends in ends.chunks(NOTE_ENDS) {
            self.tell_ended(Some(peer), notes::from_ends(ends.iter().copied()));
        }
    }

    /// A peer told of ends.
    pub(super) fn hear_ends(&self, ends: Vec<(UserSession, u64)>) {
        let now_ms = unix_ms();
        let mut fences = self.fences.lock();
        for (session, time_ms) in ends {
            // Its clock may be ahead; a fence in the future would silence what is said now.
            if session.user.len() <= ID_BYTES_MAX && session.id.len() <= ID_BYTES_MAX {
                fences.end(session, time_ms.min(now_ms), now_ms);
            }
        }
    }

    fn tell_ended(&self, peer: Option<&str>, ends: rmpv::Value) {
        if self.cluster.is_alone() {
            return;
        }
        if let Err(error) = self.cluster.note(peer, notes::ENDED, ends) {
            tracing::debug!(%error, "other replicas were not told that a session ended");
        }
    }
}
