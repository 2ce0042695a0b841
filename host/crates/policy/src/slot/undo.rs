//! The ways back: undo, quarantine, retry.

use super::policy::{LoadReport, Policy};
use crate::contract::slot::Slot;
use crate::guest::Digest;
use crate::slot::history::{History, Quarantined, Standing};
use crate::slot::status::unix_ms;

/// Why nothing was undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    /// No earlier generation is kept that never failed too often.
    #[error("no earlier good generation is kept")]
    NothingKept,
}

/// What is kept of the words that go with a quarantine.
const WHY_MAX_BYTES: usize = 1024;

impl<S: Slot> Policy<S> {
    /// Goes back to the generation before, which serves at once; a second time goes back further. What is undone is not
    /// kept: it can be loaded again.
    ///
    /// # Errors
    /// When no good one is kept; then nothing changes.
    pub fn undo(&self) -> Result<LoadReport, UndoError> {
        let mut history = self.history.lock();
        let earlier = history.take_last_good().ok_or(UndoError::NothingKept)?;
        let (digest, info) = (earlier.digest, earlier.info.clone());
        earlier.warm_later();
        if let Some(undone) = self.activate(&mut history, Some(earlier), Standing::Undone) {
            history.note_undone(undone.generation.digest);
        }
        Ok(LoadReport { changed: true, generation: history.number, digest, info })
    }

    /// Where others say what served well before: a trip and an undo go to none but these.
    pub fn keep_only(&self, digests: &[Digest]) {
        self.history.lock().keep_only(digests);
    }

    /// No load takes this digest until [`Policy::retry`]. If it serves, the last good generation does from now on, or the
    /// native rule: then the answer is true.
    pub fn quarantine(&self, digest: Digest, why: &str) -> bool {
        let why = crate::text::bounded(why, WHY_MAX_BYTES);
        self.restore_quarantine(Quarantined { digest, why, at: unix_ms() })
    }

    /// As [`Policy::quarantine`], with the moment when that was first said.
    pub fn restore_quarantine(&self, quarantined: Quarantined) -> bool {
        let mut history = self.history.lock();
        let digest = quarantined.digest;
        history.quarantine(quarantined);
        let serves = self.active.load().as_ref().is_some_and(|active| active.generation.digest == digest);
        if serves {
            self.fall_back(&mut history);
        }
        serves
    }

    /// Lets this digest be loaded again, and asks arms of it again; whether it was quarantined or such an arm had tripped.
    pub fn retry(&self, digest: &Digest) -> bool {
        let lifted = self.history.lock().lift(digest);
        let asked_again = self.arms.retry(digest);
        lifted || asked_again
    }

    /// What serves was quarantined: gives what serves from now on.
    pub(super) fn fall_back(&self, history: &mut History<S>) -> Option<Digest> {
        let good = history.take_last_good();
        let standing = if good.is_some() { Standing::LastGood } else { history.standing };
        let digest = good.as_ref().map(|generation| generation.digest);
        if let Some(good) = &good {
            good.warm_later();
        }
        if let Some(mut bad) = self.activate(history, good, standing) {
            bad.tripped = true;
            history.keep(bad);
        }
        digest
    }

    /// Whether the native rule serves because what was loaded last was taken away.
    pub fn is_taken_away(&self) -> bool {
        self.history.lock().is_taken_away
    }

    /// Digests that were undone since the last switch, oldest first.
    pub fn undone(&self) -> Vec<Digest> {
        self.history.lock().undone.clone()
    }
}
