//! Decides the next step of a replica: fill an emptied store, apply the quarantine, prepare or end a push, follow the
//! pointer.

use super::{Follower, Postponed, RETRY_MS, RolloutStep};
use crate::rollout::document::{Digest, Document, PendingPush, Uid};
use crate::rollout::view::{ReplicaReport, ReportError, RolloutView};

/// In so many milliseconds who follows the pointers has reported: they look once a second.
pub(super) const REPORTS_MS: u64 = 3_000;

/// What a replica said of a push.
enum PushAnswer {
    Prepared,
    Failed(String, String),
    Nothing,
}

impl Follower {
    /// The next step; `None`: nothing to do until something changes or time passes.
    pub fn step(&mut self, seen: &RolloutView) -> Option<RolloutStep> {
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
            return Some(RolloutStep::Store(current.clone()));
        }
        self.quarantines(document, seen.now_ms)
            .or_else(|| self.discard(document))
            .or_else(|| self.roll(seen))
            .or_else(|| self.follow(document, seen.now_ms))
    }

    fn see_push(&mut self, pending: Option<&PendingPush>, now_ms: u64) {
        if self.push.as_ref() != pending {
            self.push = pending.cloned();
            self.push_since_ms = pending.map_or(0, |pending| pending.pushed_ms);
        }
        self.push_since_ms = self.push_since_ms.min(now_ms);
    }

    /// Whoever serves the newest fills the store again.
    fn restore(&mut self, document: &Document) -> Option<RolloutStep> {
        self.is_in_step = false;
        let has = |digest: &Digest| self.kept.contains(digest);
        let is_here = self.known.current.as_ref().is_none_or(has);
        is_here.then(|| RolloutStep::Restore(self.known.restored(document, has)))
    }

    /// Brings the breaker's news to the document, and the document's quarantine to the engine.
    fn quarantines(&mut self, document: &Document, now_ms: u64) -> Option<RolloutStep> {
        self.tripped.retain(|digest, _| document.quarantine_of(digest).is_none());
        if let Some((digest, why)) = self.tripped.first_key_value() {
            return Some(RolloutStep::Write(document.quarantine(digest, why, &self.me, now_ms)));
        }
        let new = document.quarantined.iter().find(|known| !self.quarantined.contains(&known.digest));
        if let Some(new) = new {
            self.quarantined.insert(new.digest.clone());
            self.prepared.remove(&new.digest);
            return Some(RolloutStep::Quarantine(new.digest.clone(), new.why.clone()));
        }
        let freed = self.quarantined.iter().find(|digest| document.quarantine_of(digest).is_none()).cloned()?;
        self.quarantined.remove(&freed);
        Some(RolloutStep::Free(freed))
    }

    /// There is no document, but others serve something: they are about to write it.
    fn is_forgotten(&self, seen: &RolloutView) -> bool {
        let serves = |uid: &Uid| seen.reports.get(uid).is_some_and(|report| report.serving.is_some());
        seen.document.version == 0 && seen.live.iter().any(|uid| *uid != self.me && serves(uid))
    }

    /// Whether nobody may know of more than this replica does. Without a document that is so once all that live have said that they
    /// serve nothing, or had the time to: those do not report for whom the policy directory rules.
    fn is_certain(&mut self, seen: &RolloutView) -> bool {
        if !seen.is_complete || seen.document.version > 0 {
            self.empty_since_ms = None;
            return seen.is_complete;
        }
        let since_ms = self.empty_since_ms.map_or(seen.now_ms, |since_ms| since_ms.min(seen.now_ms));
        self.empty_since_ms = Some(since_ms);
        let has_reported = |uid: &Uid| *uid == self.me || seen.reports.contains_key(uid);
        seen.live.iter().all(has_reported) || seen.now_ms - since_ms >= REPORTS_MS
    }

    fn discard(&mut self, document: &Document) -> Option<RolloutStep> {
        let pending = document.pending.as_ref().map(|pending| &pending.digest);
        let is_wanted = |digest: &Digest| pending == Some(digest) || document.current.as_ref() == Some(digest);
        let unwanted = self.prepared.iter().find(|digest| !is_wanted(digest)).cloned()?;
        self.prepared.remove(&unwanted);
        Some(RolloutStep::Discard(unwanted))
    }

    /// A push under way: prepares it here, and ends it when all have answered or time is up.
    fn roll(&mut self, seen: &RolloutView) -> Option<RolloutStep> {
        let pending = seen.document.pending.as_ref()?;
        if let Some(ended) = self.end_push(seen, pending) {
            return Some(RolloutStep::Write(ended));
        }
        let is_answered = self.has_ready(&pending.digest) || self.failed_push(pending).is_some();
        (!is_answered).then(|| self.prepare(&pending.digest, seen.now_ms)).flatten()
    }

    fn end_push(&self, seen: &RolloutView, pending: &PendingPush) -> Option<Document> {
        let (document, now_ms) = (&seen.document, seen.now_ms);
        let mut missing = Vec::new();
        let mut failed = None;
        let mut prepared = 0;
        for uid in seen.live.iter().chain((!seen.live.contains(&self.me)).then_some(&self.me)) {
            match self.answer(seen, pending, uid) {
                PushAnswer::Prepared => prepared += 1,
                PushAnswer::Failed(kind, message) => failed = failed.or(Some((uid, kind, message))),
                PushAnswer::Nothing => missing.push(&**uid),
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

    fn answer(&self, seen: &RolloutView, pending: &PendingPush, uid: &Uid) -> PushAnswer {
        if *uid == self.me {
            return match self.failed_push(pending) {
                _ if self.has_ready(&pending.digest) => PushAnswer::Prepared,
                Some(error) => PushAnswer::Failed(error.kind.clone(), error.message.clone()),
                None => PushAnswer::Nothing,
            };
        }
        match seen.reports.get(uid).filter(|report| report.push == Some(pending.pushed_ms)) {
            Some(report) if report.prepared.as_ref() == Some(&pending.digest) => PushAnswer::Prepared,
            Some(ReplicaReport { error: Some(error), .. }) if error.digest == pending.digest => {
                PushAnswer::Failed(error.kind.clone(), error.message.clone())
            }
            _ => PushAnswer::Nothing,
        }
    }

    fn follow(&mut self, document: &Document, now_ms: u64) -> Option<RolloutStep> {
        if self.serving == document.current {
            return None;
        }
        let Some(current) = &document.current else { return Some(RolloutStep::Unload) };
        if self.prepared.remove(current) {
            return Some(RolloutStep::Switch(current.clone()));
        }
        if self.errors.get(current).is_some_and(|own| now_ms < own.at_ms + RETRY_MS) {
            return None;
        }
        self.prepare(current, now_ms)
    }

    fn prepare(&mut self, digest: &Digest, now_ms: u64) -> Option<RolloutStep> {
        // A clock that was set back makes nobody wait longer.
        let is_early = |late: &Postponed| now_ms >= late.at_ms && now_ms - late.at_ms < late.wait_ms;
        if self.preparing.is_some() || self.postponed.get(digest).is_some_and(is_early) {
            return None;
        }
        self.preparing = Some(digest.clone());
        Some(RolloutStep::Prepare(digest.clone()))
    }

    fn failed_push(&self, pending: &PendingPush) -> Option<&ReportError> {
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
