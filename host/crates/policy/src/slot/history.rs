//! What served a slot before, what may not serve it again, and why what serves it does.

use crate::contract::slot::Slot;
use crate::guest::Digest;
use crate::guest::generation::Generation;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How many generations are kept behind the one that serves.
pub const KEPT_MAX: usize = 3;

/// How many digests a slot's quarantine holds; the oldest is let go for a new one.
pub const QUARANTINED_MAX: usize = 32;

/// Digests that were undone since the last switch: no more than could be kept, and as many from a host's own store.
const UNDONE_MAX: usize = 2 * KEPT_MAX;

/// Why what serves does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is what was loaded last, or what was loaded last was taken away.
    Newest,
    /// What was loaded later was undone by the operator.
    Undone,
    /// What was loaded later is bad.
    LastGood,
}

/// A digest that no load takes until the operator says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    /// The generation.
    pub digest: Digest,
    /// For the operator.
    pub why: String,
    /// Since when, in milliseconds since the Unix epoch.
    pub at: u64,
}

/// A generation that served before.
pub(crate) struct Kept<S: Slot> {
    pub(crate) generation: Arc<Generation<S>>,
    /// Its number when it served.
    pub(crate) number: u64,
    /// When it began to serve, in milliseconds since the Unix epoch.
    pub(crate) since_ms: u64,
    /// It was given up for its failures, and no way back leads to it.
    pub(crate) tripped: bool,
}

/// Changed by one at a time, and never for long.
pub(crate) struct History<S: Slot> {
    /// How often what serves has changed.
    pub(crate) number: u64,
    pub(crate) since_ms: u64,
    pub(crate) standing: Standing,
    /// What was loaded last was taken away, and nothing was loaded since.
    pub(crate) is_taken_away: bool,
    pub(crate) trips: u64,
    /// Newest first; never what serves.
    pub(crate) kept: Vec<Kept<S>>,
    /// Oldest first.
    pub(crate) quarantined: Vec<Quarantined>,
    /// Oldest first.
    pub(crate) undone: Vec<Digest>,
}

impl<S: Slot> History<S> {
    pub(crate) fn new(since_ms: u64) -> Self {
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

    /// Why what serves does from now on; with the newest load earlier undos are over.
    pub(crate) fn stand(&mut self, standing: Standing) {
        self.standing = standing;
        if standing == Standing::Newest {
            self.undone.clear();
        }
    }

    /// Puts a generation aside that served until now. One of the same digest that was kept before gives way.
    pub(crate) fn keep(&mut self, kept: Kept<S>) {
        self.forget(&kept.generation.digest);
        kept.generation.put_aside();
        self.kept.insert(0, kept);
        if self.kept.len() > KEPT_MAX {
            let last = self.kept.len() - 1;
            self.kept.remove(self.kept.iter().rposition(|kept| kept.tripped).unwrap_or(last));
        }
    }

    /// Drops a generation from those kept.
    pub(crate) fn forget(&mut self, digest: &Digest) {
        self.kept.retain(|kept| kept.generation.digest != *digest);
    }

    /// Drops the good ones that are not among these; what tripped leads nowhere, and stays to be seen.
    pub(crate) fn keep_only(&mut self, digests: &[Digest]) {
        self.kept.retain(|kept| kept.tripped || digests.contains(&kept.generation.digest));
    }

    /// Takes the last good generation out of those kept.
    pub(crate) fn take_last_good(&mut self) -> Option<Arc<Generation<S>>> {
        let good = |kept: &Kept<S>| !kept.tripped && self.quarantine_of(&kept.generation.digest).is_none();
        let index = self.kept.iter().position(good)?;
        Some(self.kept.remove(index).generation)
    }

    /// Why a digest may not be loaded.
    pub(crate) fn quarantine_of(&self, digest: &Digest) -> Option<&Quarantined> {
        self.quarantined.iter().find(|quarantined| quarantined.digest == *digest)
    }

    /// No load takes it from now on; said again, the first reason stays.
    pub(crate) fn quarantine(&mut self, quarantined: Quarantined) {
        if self.quarantine_of(&quarantined.digest).is_some() {
            return;
        }
        if self.quarantined.len() >= QUARANTINED_MAX {
            self.quarantined.remove(0);
        }
        for kept in self.kept.iter_mut().filter(|kept| kept.generation.digest == quarantined.digest) {
            kept.tripped = true;
        }
        self.quarantined.push(quarantined);
    }

    /// Whether it was quarantined.
    pub(crate) fn lift(&mut self, digest: &Digest) -> bool {
        let before = self.quarantined.len();
        self.quarantined.retain(|quarantined| quarantined.digest != *digest);
        self.quarantined.len() < before
    }

    /// The operator does not want it.
    pub(crate) fn note_undone(&mut self, digest: Digest) {
        self.undone.retain(|undone| *undone != digest);
        if self.undone.len() >= UNDONE_MAX {
            self.undone.remove(0);
        }
        self.undone.push(digest);
    }
}
