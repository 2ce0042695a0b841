//! One replica's part in the rollouts of one slot.

use std::collections::{BTreeMap, BTreeSet};

use super::{Digest, Document, Pending, Report, ReportError, Seen, Uid};

/// After how long a generation that was to serve and could not be prepared is tried again, in milliseconds.
const RETRY_MS: u64 = 10_000;
/// After how long a module that could not be fetched is asked for again; doubled each time, up to [`RETRY_MS`].
const POSTPONED_MS: u64 = 1_000;
/// In so many milliseconds who follows the pointers has reported: they look once a second.
const REPORTS_MS: u64 = 3_000;

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
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
    push: Option<Pending>,
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

/// What a replica said of a push.
enum Answer {
    Prepared,
    Failed(String, String),
    Nothing,
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

    /// [`Step::Prepare`] went well.
    pub fn prepared(&mut self, digest: &Digest) {
        self.end_preparing(digest);
        self.prepared.insert(digest.clone());
        self.errors.remove(digest);
        self.postponed.remove(digest);
    }

    /// [`Step::Prepare`] or [`Step::Switch`] did not go well; `kind` as the engine names it.
    pub fn refused(&mut self, digest: &Digest, kind: &str, message: &str, now_ms: u64) {
        self.end_preparing(digest);
        self.prepared.remove(digest);
        self.postponed.remove(digest);
        let push = self.push.as_ref().filter(|push| push.digest == *digest).map(|push| push.pushed_ms);
        let error = ReportError { digest: digest.clone(), kind: kind.to_owned(), message: message.to_owned() };
        self.errors.insert(digest.clone(), OwnError { error, push, at_ms: now_ms });
    }

    /// [`Step::Prepare`] came to nothing because the store did not give the module: it is asked for again a while later, in as many
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
    pub fn report(&self) -> Report {
        let prepared = self.push.as_ref().map(|push| &push.digest).filter(|digest| self.has_ready(digest));
        // One of a push is waited for.
        let error = self.errors.values().max_by_key(|own| own.push.is_some()).map(|own| &own.error);
        // What is pushed may come yet, and must not be taken for failed.
        let is_pushed = |digest: &Digest| self.push.as_ref().is_some_and(|push| push.digest == *digest);
        let late = self.postponed.values().map(|late| &late.error).find(|error| !is_pushed(&error.digest));
        Report {
            serving: self.serving.clone(),
            generation: self.generation,
            push: self.push.as_ref().map(|push| push.pushed_ms),
            prepared: prepared.cloned(),
            error: error.or(late).cloned(),
        }
    }

    /// The next step; `None`: nothing to do until something changes or time passes.
    pub fn step(&mut self, seen: &Seen) -> Option<Step> {
        let document = &seen.document;
        self.see_push(document.pending.as_ref(), seen.now_ms);
        if self.is_ahead(document) {
            // The store forgot. What is there now is of somebody who knew less.
            return self.restore(document);
        }
        let is_pointed = self.serving == document.current && !self.is_forgotten(seen);
        self.is_in_step = is_pointed && document.version >= self.known.version;
        self.was_in_step |= is_pointed && self.is_certain(seen);
        if is_pointed {
            self.known.clone_from(document);
        }
        self.forget_errors(document);
        if let Some(current) = document.current.as_ref().filter(|_| is_pointed && !seen.is_current_stored)
            && self.kept.contains(current)
        {
            // Once for what was seen; a look later it is there.
            return Some(Step::Store(current.clone()));
        }
        self.quarantines(document, seen.now_ms)
            .or_else(|| self.discard(document))
            .or_else(|| self.roll(seen))
            .or_else(|| self.follow(document, seen.now_ms))
    }

    fn see_push(&mut self, pending: Option<&Pending>, now_ms: u64) {
        if self.push.as_ref() != pending {
            self.push = pending.cloned();
            self.push_since_ms = pending.map_or(0, |pending| pending.pushed_ms);
        }
        self.push_since_ms = self.push_since_ms.min(now_ms);
    }

    fn end_preparing(&mut self, digest: &Digest) {
        if self.preparing.as_ref() == Some(digest) {
            self.preparing = None;
        }
    }

    /// Whoever serves the newest fills the store again.
    fn restore(&mut self, document: &Document) -> Option<Step> {
        self.is_in_step = false;
        let has = |digest: &Digest| self.kept.contains(digest);
        let is_here = self.known.current.as_ref().is_none_or(has);
        is_here.then(|| Step::Restore(self.known.restored(document, has)))
    }

    /// Brings the breaker's news to the document, and the document's quarantine to the engine.
    fn quarantines(&mut self, document: &Document, now_ms: u64) -> Option<Step> {
        self.tripped.retain(|digest, _| document.quarantine_of(digest).is_none());
        if let Some((digest, why)) = self.tripped.first_key_value() {
            return Some(Step::Write(document.quarantine(digest, why, &self.me, now_ms)));
        }
        let new = document.quarantined.iter().find(|known| !self.quarantined.contains(&known.digest));
        if let Some(new) = new {
            self.quarantined.insert(new.digest.clone());
            self.prepared.remove(&new.digest);
            return Some(Step::Quarantine(new.digest.clone(), new.why.clone()));
        }
        let freed = self.quarantined.iter().find(|digest| document.quarantine_of(digest).is_none()).cloned()?;
        self.quarantined.remove(&freed);
        Some(Step::Free(freed))
    }

    /// There is no document, but others serve something: they are about to write it.
    fn is_forgotten(&self, seen: &Seen) -> bool {
        let serves = |uid: &Uid| seen.reports.get(uid).is_some_and(|report| report.serving.is_some());
        seen.document.version == 0 && seen.live.iter().any(|uid| *uid != self.me && serves(uid))
    }

    /// Whether nobody may know of more than this replica does. Without a document that is so once all that live have said that they
    /// serve nothing, or had the time to: those do not report for whom the policy directory rules.
    fn is_certain(&mut self, seen: &Seen) -> bool {
        if !seen.is_complete || seen.document.version > 0 {
            self.empty_since_ms = None;
            return seen.is_complete;
        }
        let since_ms = self.empty_since_ms.map_or(seen.now_ms, |since_ms| since_ms.min(seen.now_ms));
        self.empty_since_ms = Some(since_ms);
        let has_reported = |uid: &Uid| *uid == self.me || seen.reports.contains_key(uid);
        seen.live.iter().all(has_reported) || seen.now_ms - since_ms >= REPORTS_MS
    }

    fn discard(&mut self, document: &Document) -> Option<Step> {
        let pending = document.pending.as_ref().map(|pending| &pending.digest);
        let is_wanted = |digest: &Digest| pending == Some(digest) || document.current.as_ref() == Some(digest);
        let unwanted = self.prepared.iter().find(|digest| !is_wanted(digest)).cloned()?;
        self.prepared.remove(&unwanted);
        Some(Step::Discard(unwanted))
    }

    /// A push under way: prepares it here, and ends it when all have answered or time is up.
    fn roll(&mut self, seen: &Seen) -> Option<Step> {
        let pending = seen.document.pending.as_ref()?;
        if let Some(ended) = self.end_push(seen, pending) {
            return Some(Step::Write(ended));
        }
        let is_answered = self.has_ready(&pending.digest) || self.failed_push(pending).is_some();
        (!is_answered).then(|| self.prepare(&pending.digest, seen.now_ms)).flatten()
    }

    fn end_push(&self, seen: &Seen, pending: &Pending) -> Option<Document> {
        let (document, now_ms) = (&seen.document, seen.now_ms);
        let mut missing = Vec::new();
        let mut failed = None;
        let mut prepared = 0;
        for uid in seen.live.iter().chain((!seen.live.contains(&self.me)).then_some(&self.me)) {
            match self.answer(seen, pending, uid) {
                Answer::Prepared => prepared += 1,
                Answer::Failed(kind, message) => failed = failed.or(Some((uid, kind, message))),
                Answer::Nothing => missing.push(&**uid),
            }
        }
        let is_late = now_ms.saturating_sub(self.push_since_ms) > self.timeout_ms;
        let have_all_answered = missing.is_empty() && seen.is_complete;
        match failed {
            Some((uid, kind, message)) if !pending.force || (have_all_answered && prepared == 0) => {
                Some(document.fail(Some(uid), &kind, &message, now_ms))
            }
            _ if have_all_answered || (is_late && pending.force && prepared > 0) => Some(document.moved(now_ms)),
            _ if is_late => {
                let whom = if missing.is_empty() { "replicas not heard from yet".into() } else { missing.join(", ") };
                let message = format!("no answer after {} ms from {whom}", self.timeout_ms);
                let first = missing.first().map(|uid| Uid::from(*uid));
                Some(document.fail(first.as_ref(), "timeout", &message, now_ms))
            }
            _ => None,
        }
    }

    fn answer(&self, seen: &Seen, pending: &Pending, uid: &Uid) -> Answer {
        if *uid == self.me {
            return match self.failed_push(pending) {
                _ if self.has_ready(&pending.digest) => Answer::Prepared,
                Some(error) => Answer::Failed(error.kind.clone(), error.message.clone()),
                None => Answer::Nothing,
            };
        }
        match seen.reports.get(uid).filter(|report| report.push == Some(pending.pushed_ms)) {
            Some(report) if report.prepared.as_ref() == Some(&pending.digest) => Answer::Prepared,
            Some(Report { error: Some(error), .. }) if error.digest == pending.digest => {
                Answer::Failed(error.kind.clone(), error.message.clone())
            }
            _ => Answer::Nothing,
        }
    }

    fn follow(&mut self, document: &Document, now_ms: u64) -> Option<Step> {
        if self.serving == document.current {
            return None;
        }
        let Some(current) = &document.current else { return Some(Step::Unload) };
        if self.prepared.remove(current) {
            return Some(Step::Switch(current.clone()));
        }
        if self.errors.get(current).is_some_and(|own| now_ms < own.at_ms + RETRY_MS) {
            return None;
        }
        self.prepare(current, now_ms)
    }

    fn prepare(&mut self, digest: &Digest, now_ms: u64) -> Option<Step> {
        // A clock that was set back makes nobody wait longer.
        let is_early = |late: &Postponed| now_ms >= late.at_ms && now_ms - late.at_ms < late.wait_ms;
        if self.preparing.is_some() || self.postponed.get(digest).is_some_and(is_early) {
            return None;
        }
        self.preparing = Some(digest.clone());
        Some(Step::Prepare(digest.clone()))
    }

    /// What serves is not ready for a push of the same: it serves because this replica is out of step, and is about to leave.
    fn has_ready(&self, digest: &Digest) -> bool {
        self.prepared.contains(digest)
    }

    fn failed_push(&self, pending: &Pending) -> Option<&ReportError> {
        let own = self.errors.get(&pending.digest)?;
        (own.push == Some(pending.pushed_ms)).then_some(&own.error)
    }

    /// An error of a former push is the document's to tell. One about a push that was not seen yet is of a former one.
    fn forget_errors(&mut self, document: &Document) {
        let (current, push) = (document.current.clone(), document.pending.as_ref().map(|pending| pending.pushed_ms));
        let is_lagging = current != self.serving;
        self.errors.retain(|digest, own| {
            (is_lagging && current.as_ref() == Some(digest)) || (own.push.is_some() && own.push == push)
        });
        let pending = document.pending.as_ref().map(|pending| &pending.digest);
        let is_wanted = |digest: &Digest| (is_lagging && current.as_ref() == Some(digest)) || pending == Some(digest);
        self.postponed.retain(|digest, _| is_wanted(digest));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
