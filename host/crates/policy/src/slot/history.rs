//! Remembers what served a slot before, what is quarantined, and why the current generation serves.

use crate::contract::Slot;
use crate::guest::{Digest, Generation, LoadError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How many generations are kept behind the one that serves.
pub const KEPT_MAX: usize = 3;

/// How many digests a slot's quarantine holds. A further one replaces the oldest.
pub const QUARANTINED_MAX: usize = 32;

/// How many undone digests are remembered: as many as could be kept, and as many from a host's own store.
const UNDONE_MAX: usize = 2 * KEPT_MAX;

/// Why the current generation, or the native rule, serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It was loaded last, or what was loaded last was taken away.
    Newest,
    /// What was loaded later was undone by the operator.
    Undone,
    /// What was loaded later is bad.
    LastGood,
}

/// A digest that cannot be loaded until the operator retries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    /// The generation.
    pub digest: Digest,
    /// The reason, for the operator.
    pub why: String,
    /// Since when, in milliseconds since the Unix epoch.
    pub at: u64,
}

/// A generation that served before.
pub(super) struct KeptGeneration<S: Slot> {
    pub(super) generation: Arc<Generation<S>>,
    /// Its number when it served.
    pub(super) number: u64,
    /// When it began to serve, in milliseconds since the Unix epoch.
    pub(super) since_ms: u64,
    /// It was given up for its failures, so neither a trip nor an undo goes back to it.
    pub(super) tripped: bool,
}

pub(super) struct History<S: Slot> {
    /// How often what serves has changed.
    pub(super) number: u64,
    pub(super) since_ms: u64,
    pub(super) standing: Standing,
    /// What was loaded last was taken away, and nothing has been loaded since.
    pub(super) is_taken_away: bool,
    pub(super) trips: u64,
    /// Newest first; never what serves.
    pub(super) kept: Vec<KeptGeneration<S>>,
    /// Oldest first.
    pub(super) quarantined: Vec<Quarantined>,
    /// Oldest first.
    pub(super) undone: Vec<Digest>,
}

impl<S: Slot> History<S> {
    pub(super) fn new(since_ms: u64) -> Self {
        Self {
            number: 0,
            since_ms,
            standing: Standing::Newest,
            is_taken_away: false,
            trips: 0,
            kept: Vec::new(),
            quarantined: Vec::new(),
            undone: Vec::new(),
        }
    }

    /// Sets why the current generation serves. The newest load forgets earlier undos.
    pub(super) fn set_standing(&mut self, standing: Standing) {
        self.standing = standing;
        if standing == Standing::Newest {
            self.undone.clear();
        }
    }

    /// Keeps a generation that served until now, in place of an earlier one of the same digest.
    pub(super) fn keep(&mut self, kept: KeptGeneration<S>) {
        self.forget(&kept.generation.digest());
        kept.generation.put_aside();
        self.kept.insert(0, kept);
        if self.kept.len() > KEPT_MAX {
            let last = self.kept.len() - 1;
            self.kept.remove(self.kept.iter().rposition(|kept| kept.tripped).unwrap_or(last));
        }
    }

    /// Drops a kept generation.
    pub(super) fn forget(&mut self, digest: &Digest) {
        self.kept.retain(|kept| kept.generation.digest() != *digest);
    }

    /// Drops the kept good generations that are not among these. Those that tripped stay, for the report.
    pub(super) fn keep_only(&mut self, digests: &[Digest]) {
        self.kept.retain(|kept| kept.tripped || digests.contains(&kept.generation.digest()));
    }

    /// Removes the last good generation from those kept.
    pub(super) fn take_last_good(&mut self) -> Option<Arc<Generation<S>>> {
        let good = |kept: &KeptGeneration<S>| !kept.tripped && self.quarantine_of(&kept.generation.digest()).is_none();
        let index = self.kept.iter().position(good)?;
        Some(self.kept.remove(index).generation)
    }

    /// Refuses a digest that is quarantined.
    pub(super) fn check_quarantine(&self, digest: &Digest) -> Result<(), LoadError> {
        self.quarantine_of(digest).map_or(Ok(()), |quarantined| Err(LoadError::Quarantined(quarantined.why.clone())))
    }

    fn quarantine_of(&self, digest: &Digest) -> Option<&Quarantined> {
        self.quarantined.iter().find(|quarantined| quarantined.digest == *digest)
    }

    /// Quarantines a digest. A second time, the first reason stays.
    pub(super) fn quarantine(&mut self, quarantined: Quarantined) {
        if self.quarantine_of(&quarantined.digest).is_some() {
            return;
        }
        if self.quarantined.len() >= QUARANTINED_MAX {
            self.quarantined.remove(0);
        }
        for kept in self.kept.iter_mut().filter(|kept| kept.generation.digest() == quarantined.digest) {
            kept.tripped = true;
        }
        self.quarantined.push(quarantined);
    }

    /// Ends the quarantine of a digest. Returns whether there was one.
    pub(super) fn lift_quarantine(&mut self, digest: &Digest) -> bool {
        let before = self.quarantined.len();
        self.quarantined.retain(|quarantined| quarantined.digest != *digest);
        self.quarantined.len() < before
    }

    /// Remembers that the operator undid this digest.
    pub(super) fn note_undone(&mut self, digest: Digest) {
        self.undone.retain(|undone| *undone != digest);
        if self.undone.len() >= UNDONE_MAX {
            self.undone.remove(0);
        }
        self.undone.push(digest);
    }
}
