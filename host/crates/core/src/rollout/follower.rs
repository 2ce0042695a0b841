//! Takes one replica's part in the rollouts of one slot: it remembers what the replica serves, prepared and reported.

mod steps;

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Digest, Document, PendingPush, Uid};
use super::view::{ReplicaReport, ReportError};

/// After how long a generation that was to serve and could not be prepared is tried again, in milliseconds.
const RETRY_MS: u64 = 10_000;
/// After how long a module that could not be fetched is asked for again; doubled each time, up to [`RETRY_MS`].
const POSTPONED_MS: u64 = 1_000;
/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutStep {
    /// Fetch and prepare it beside what serves; then [`Follower::prepared`] or [`Follower::refused`].
    Prepare(Digest),
    /// Switch to it: it is prepared.
    Switch(Digest),
    /// Go back to the native rule.
    Unload,
    /// Never load it until it is freed.
    Quarantine(Digest, String),
    /// It may be loaded again.
    Free(Digest),
    /// Forget what was prepared: nobody wants it any more.
    Discard(Digest),
    /// Put the module of what serves back into the store, which lacks it.
    Store(Digest),
    /// Write the document, if it is still the one that was seen.
    Write(Document),
    /// The same, after the modules that are kept here were put back into the store, which forgot.
    Restore(Document),
}

/// One replica's part in the rollouts of one slot. The host tells it what came of each step and shows it the shared state; it asks
/// for the next step until there is none.
#[derive(Debug)]
pub struct Follower {
    me: Uid,
    timeout_ms: u64,
    serving: Option<Digest>,
    generation: u64,
    /// Prepared and waiting to serve: what was pushed, what the pointer names.
    prepared: BTreeSet<Digest>,
    preparing: Option<Digest>,
    /// Of what was pushed, and of what is to serve.
    errors: BTreeMap<Digest, OwnError>,
    /// What could not be fetched.
    postponed: BTreeMap<Digest, Postponed>,
    /// The breaker's news, until the document has it.
    tripped: BTreeMap<Digest, String>,
    /// What the engine refuses to load.
    quarantined: BTreeSet<Digest>,
    /// Modules whose bytes are here.
    kept: BTreeSet<Digest>,
    /// The document that this replica was last in step with.
    known: Document,
    /// The push that was seen last.
    push: Option<PendingPush>,
    /// Since when it is under way, by a clock that may have been set back since it was made.
    push_since_ms: u64,
    /// Since when there is no document, as far as is known of all.
    empty_since_ms: Option<u64>,
    is_in_step: bool,
    was_in_step: bool,
}

#[derive(Debug)]
struct OwnError {
    error: ReportError,
    push: Option<u64>,
    at_ms: u64,
}

#[derive(Debug)]
struct Postponed {
    error: ReportError,
    at_ms: u64,
    wait_ms: u64,
}

impl Follower {
    /// A replica in which the native rule serves. A push fails `timeout_ms` after it was made.
    #[must_use]
    pub fn new(me: Uid, timeout_ms: u64) -> Self {
        Self {
            me,
            timeout_ms,
            serving: None,
            generation: 0,
            prepared: BTreeSet::new(),
            preparing: None,
            errors: BTreeMap::new(),
            postponed: BTreeMap::new(),
            tripped: BTreeMap::new(),
            quarantined: BTreeSet::new(),
            kept: BTreeSet::new(),
            known: Document::default(),
            push: None,
            push_since_ms: 0,
            empty_since_ms: None,
            is_in_step: false,
            was_in_step: false,
        }
    }

    /// What the engine serves, and the number of that generation; to be told before each [`Follower::step`].
    pub fn serves(&mut self, serving: Option<Digest>, generation: u64) {
        self.serving = serving;
        self.generation = generation;
    }

    /// A module's bytes are here, for whoever needs them again.
    pub fn keep(&mut self, digest: Digest) {
        self.kept.insert(digest);
    }

    /// [`RolloutStep::Prepare`] went well.
    pub fn prepared(&mut self, digest: &Digest) {
        self.end_preparing(digest);
        self.prepared.insert(digest.clone());
        self.errors.remove(digest);
        self.postponed.remove(digest);
    }

    /// [`RolloutStep::Prepare`] or [`RolloutStep::Switch`] did not go well; `kind` as the engine names it.
    pub fn refused(&mut self, digest: &Digest, kind: &str, message: &str, now_ms: u64) {
        self.end_preparing(digest);
        self.prepared.remove(digest);
        self.postponed.remove(digest);
        let push = self.push.as_ref().filter(|push| push.digest == *digest).map(|push| push.pushed_ms);
        let error = ReportError { digest: digest.clone(), kind: kind.to_owned(), message: message.to_owned() };
        self.errors.insert(digest.clone(), OwnError { error, push, at_ms: now_ms });
    }

    /// [`RolloutStep::Prepare`] came to nothing because the store did not give the module: it is asked for again a while later, in as many
    /// milliseconds as the answer says. A push does not fail by it before its time is up.
    pub fn postponed(&mut self, digest: &Digest, kind: &str, message: &str, now_ms: u64) -> u64 {
        self.end_preparing(digest);
        let former_ms = self.postponed.get(digest).map(|postponed| postponed.wait_ms);
        let wait_ms = former_ms.map_or(POSTPONED_MS, |former_ms| (2 * former_ms).min(RETRY_MS));
        let error = ReportError { digest: digest.clone(), kind: kind.to_owned(), message: message.to_owned() };
        self.postponed.insert(digest.clone(), Postponed { error, at_ms: now_ms, wait_ms });
        wait_ms
    }

    /// Whether the engine is known to refuse a digest.
    #[must_use]
    pub fn knows_quarantined(&self, digest: &str) -> bool {
        self.quarantined.contains(digest)
    }

    /// The breaker took a generation back here.
    pub fn tripped(&mut self, digest: Digest, why: String) {
        self.quarantined.insert(digest.clone());
        self.prepared.remove(&digest);
        self.tripped.insert(digest, why);
    }

    /// Whether this replica serves what the document that it saw last names.
    #[must_use]
    pub fn is_in_step(&self) -> bool {
        self.is_in_step
    }

    /// Whether it ever did: only then is a replica that joins ready.
    #[must_use]
    pub fn was_in_step(&self) -> bool {
        self.was_in_step
    }

    /// Whether it knows more than `document`: the store forgot, and is about to be filled again.
    #[must_use]
    pub fn is_ahead(&self, document: &Document) -> bool {
        document.since_ms < self.known.since_ms
    }

    /// The modules whose bytes are wanted: those that would fill an emptied store again.
    #[must_use]
    pub fn wanted(&self) -> BTreeSet<Digest> {
        let former = self.known.history.iter().flatten().chain(&self.known.current);
        let pending = self.push.iter().map(|push| &push.digest);
        let prepared = self.preparing.iter().chain(&self.prepared);
        former.chain(&self.serving).chain(pending).chain(prepared).cloned().collect()
    }

    /// The bytes of these are not here any more.
    pub fn forget(&mut self, digests: &BTreeSet<Digest>) {
        self.kept.retain(|digest| !digests.contains(digest));
    }

    /// What the others are to know of this replica.
    #[must_use]
    pub fn report(&self) -> ReplicaReport {
        let prepared = self.push.as_ref().map(|push| &push.digest).filter(|digest| self.has_ready(digest));
        // One of a push is waited for.
        let error = self.errors.values().max_by_key(|own| own.push.is_some()).map(|own| &own.error);
        // What is pushed may come yet, and must not be taken for failed.
        let is_pushed = |digest: &Digest| self.push.as_ref().is_some_and(|push| push.digest == *digest);
        let late = self.postponed.values().map(|late| &late.error).find(|error| !is_pushed(&error.digest));
        ReplicaReport {
            serving: self.serving.clone(),
            generation: self.generation,
            push: self.push.as_ref().map(|push| push.pushed_ms),
            prepared: prepared.cloned(),
            error: error.or(late).cloned(),
        }
    }

    fn end_preparing(&mut self, digest: &Digest) {
        if self.preparing.as_ref() == Some(digest) {
            self.preparing = None;
        }
    }

    /// What serves is not ready for a push of the same: it serves because this replica is out of step, and is about to leave.
    fn has_ready(&self, digest: &Digest) -> bool {
        self.prepared.contains(digest)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
