//! Goes back to an earlier generation: undo, quarantine, retry.

use super::history::{History, Quarantined, Standing};
use super::load::LoadReport;
use super::policy::Policy;
use super::status::unix_ms;
use crate::contract::Slot;
use crate::guest::Digest;
use crate::text::bounded;
use std::sync::Arc;

/// What is kept of the reason of a quarantine.
const WHY_MAX_BYTES: usize = 1024;

/// Why nothing was undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    /// No earlier generation is kept, or all of them failed too often.
    #[error("no earlier good generation is kept")]
    NothingKept,
}

impl<S: Slot> Policy<S> {
    /// Goes back to the generation before, which serves at once; a second undo goes back further. The undone generation
    /// is not kept, but can be loaded again.
    ///
    /// # Errors
    /// If no good generation is kept; then nothing changes.
    pub fn undo(&self) -> Result<LoadReport, UndoError> {
        let mut history = self.history.lock();
        let earlier = history.take_last_good().ok_or(UndoError::NothingKept)?;
        earlier.warm_later();
        if let Some(undone) = self.activate(&mut history, Some(Arc::clone(&earlier)), Standing::Undone) {
            history.note_undone(undone.generation.digest());
        }
        Ok(LoadReport::new(&earlier, history.number, true))
    }

    /// Drops the kept good generations that are not among these, so that no trip and no undo goes back to them.
    pub fn keep_only(&self, digests: &[Digest]) {
        self.history.lock().keep_only(digests);
    }

    /// Refuses to load this digest until [`Policy::retry`]. If it serves, the last good generation or the native rule
    /// replaces it. Returns whether it served.
    pub fn quarantine(&self, digest: Digest, why: &str) -> bool {
        self.restore_quarantine(Quarantined { digest, why: bounded(why, WHY_MAX_BYTES), at: unix_ms() })
    }

    /// As [`Policy::quarantine`], with the moment of an earlier quarantine.
    pub fn restore_quarantine(&self, quarantined: Quarantined) -> bool {
        let mut history = self.history.lock();
        let digest = quarantined.digest;
        history.quarantine(quarantined);
        let serves = self.active.load().as_ref().is_some_and(|active| active.generation.digest() == digest);
        if serves {
            self.fall_back(&mut history);
        }
        serves
    }

    /// Allows this digest to be loaded again, and asks arms of it again. Returns whether it was quarantined or such an
    /// arm had tripped.
    pub fn retry(&self, digest: &Digest) -> bool {
        let lifted = self.history.lock().lift_quarantine(digest);
        let asked_again = self.arms.retry(digest);
        lifted || asked_again
    }

    /// Replaces what serves, which was quarantined. Returns the digest that serves from now on.
    pub(super) fn fall_back(&self, history: &mut History<S>) -> Option<Digest> {
        let good = history.take_last_good();
        let standing = if good.is_some() { Standing::LastGood } else { history.standing };
        let digest = good.as_ref().map(|generation| generation.digest());
        if let Some(good) = &good {
            good.warm_later();
        }
        if let Some(mut bad) = self.activate(history, good, standing) {
            bad.tripped = true;
            history.keep(bad);
        }
        digest
    }

    /// Whether the native rule serves because [`Policy::unload`] took away what was loaded last.
    pub fn is_taken_away(&self) -> bool {
        self.history.lock().is_taken_away
    }

    /// The digests that were undone since the last switch, oldest first.
    pub fn undone(&self) -> Vec<Digest> {
        self.history.lock().undone.clone()
    }
}
