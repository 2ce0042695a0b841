//! The document that all replicas share about one slot, and its changes. A change never edits a document in place: it
//! gives the next version, which stands if no other replica wrote first.

use std::collections::BTreeSet;
use std::sync::Arc;

/// A generation's digest, as hex digits.
pub type Digest = Arc<str>;
/// A replica's uid.
pub type Uid = Arc<str>;

/// How many former generations can be gone back to.
pub const FORMER_MAX: usize = 3;
/// How many digests are in quarantine at once; with one more the oldest is forgotten.
pub const QUARANTINED_MAX: usize = 16;

/// The pointer of a slot. `None` as a generation is the native rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// Grows with each change; 0: there is no document.
    pub version: u64,
    /// What serves, or is to.
    pub current: Option<Digest>,
    /// Since when, in milliseconds since the Unix epoch by the store's clock; grows with each move of the pointer.
    pub since_ms: u64,
    /// What served well before, newest first; at most [`FORMER_MAX`].
    pub history: Vec<Option<Digest>>,
    /// What is being prepared.
    pub pending: Option<PendingPush>,
    /// The last push that failed, until one goes well.
    pub failed: Option<FailedPush>,
    /// What failed while it served, oldest first; nobody loads it.
    pub quarantined: Vec<QuarantinedDigest>,
}

/// A push under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingPush {
    /// What is pushed.
    pub digest: Digest,
    /// When; names the push, for no two of a slot have the same.
    pub pushed_ms: u64,
    /// Whether those switch that can.
    pub force: bool,
}

/// A push that came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedPush {
    /// What was pushed.
    pub digest: Digest,
    /// When it was pushed.
    pub pushed_ms: u64,
    /// Where it failed; the first of those that did not answer.
    pub replica: Option<Uid>,
    /// The kind of a load error, or `panic`, `timeout`, `undone`, `quarantined`.
    pub kind: String,
    /// For the operator.
    pub message: String,
    /// When it failed.
    pub at_ms: u64,
}

/// A generation that the breaker took back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedDigest {
    /// Which.
    pub digest: Digest,
    /// Why.
    pub why: String,
    /// Where.
    pub replica: Uid,
    /// When.
    pub at_ms: u64,
}

/// Why a push is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PushRefused {
    /// Another one is under way.
    #[error("a push of {} is under way: it ends by itself, or by an undo", .0.digest)]
    Pending(PendingPush),
    /// It failed while it served.
    #[error("{} is in quarantine, by replica {}: {}; `retry` takes it out", .0.digest, .0.replica, .0.why)]
    Quarantined(QuarantinedDigest),
}

/// Why nothing is undone: nothing is pushed, and nothing served before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nothing served before that could be gone back to")]
pub struct NothingToUndo;

/// Why a digest is not taken out of quarantine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RetryRefused {
    /// It is not in quarantine.
    #[error("{0} is not in quarantine")]
    NotQuarantined(Digest),
    /// It would be pushed, and another push is under way.
    #[error(transparent)]
    Push(#[from] PushRefused),
}

impl Document {
    /// With a push of `digest`, if none is under way; `None` when it serves already.
    ///
    /// # Errors
    /// See [`PushRefused`].
    pub fn push(&self, digest: &Digest, force: bool, now_ms: u64) -> Result<Option<Self>, PushRefused> {
        if let Some(pending) = &self.pending {
            return Err(PushRefused::Pending(pending.clone()));
        }
        if let Some(quarantined) = self.quarantine_of(digest) {
            return Err(PushRefused::Quarantined(quarantined.clone()));
        }
        if self.current.as_ref() == Some(digest) {
            return Ok(None);
        }
        let last_ms = self.failed.as_ref().map_or(0, |failed| failed.pushed_ms);
        let pushed_ms = now_ms.max(last_ms + 1).max(self.since_ms + 1);
        let pending = Some(PendingPush { digest: digest.clone(), pushed_ms, force });
        Ok(Some(Self { pending, ..self.next() }))
    }

    /// Ends the push under way, and what serves goes on serving; without one, back to what served before what serves now.
    ///
    /// # Errors
    /// When nothing is pushed and nothing did.
    pub fn undo(&self, now_ms: u64) -> Result<Self, NothingToUndo> {
        if self.pending.is_some() {
            return Ok(self.fail(None, "undone", "an operator ended it", now_ms));
        }
        if self.history.is_empty() {
            return Err(NothingToUndo);
        }
        Ok(self.back(now_ms))
    }

    /// The generation that an undo would go back to; `None`: it would end a push, or go back to the native rule, or nowhere.
    #[must_use]
    pub fn undoes_to(&self) -> Option<&Digest> {
        if self.pending.is_some() { None } else { self.history.first()?.as_ref() }
    }

    /// Takes a digest out of quarantine and pushes it again, if its module is still in the store; else it can be pushed anew.
    ///
    /// # Errors
    /// See [`RetryRefused`].
    pub fn retry(&self, digest: &Digest, is_stored: bool, force: bool, now_ms: u64) -> Result<Self, RetryRefused> {
        if self.quarantine_of(digest).is_none() {
            return Err(RetryRefused::NotQuarantined(digest.clone()));
        }
        let mut freed = self.clone();
        freed.quarantined.retain(|quarantined| quarantined.digest != *digest);
        let pushed = if is_stored { freed.push(digest, force, now_ms)? } else { None };
        Ok(pushed.unwrap_or_else(|| freed.next()))
    }

    /// The pointer moves to what was pushed.
    #[must_use]
    pub fn moved(&self, now_ms: u64) -> Self {
        let Some(pending) = &self.pending else { return self.next() };
        let new = Some(pending.digest.clone());
        let mut history = self.history.clone();
        history.retain(|former| *former != self.current && *former != new);
        history.insert(0, self.current.clone());
        history.truncate(FORMER_MAX);
        let since_ms = self.later(now_ms);
        Self { current: new, since_ms, history, pending: None, failed: None, ..self.next() }
    }

    /// The push fails; what serves goes on serving.
    #[must_use]
    pub fn fail(&self, replica: Option<&Uid>, kind: &str, message: &str, now_ms: u64) -> Self {
        self.end_pending(kind, message, replica, now_ms).next()
    }

    /// A digest failed while it served at `replica`: nobody is to load it, and the pointer leaves it.
    #[must_use]
    pub fn quarantine(&self, digest: &Digest, why: &str, replica: &Uid, now_ms: u64) -> Self {
        let mut changed = self.next();
        if changed.quarantine_of(digest).is_none() {
            let quarantined = QuarantinedDigest {
                digest: digest.clone(),
                why: why.to_owned(),
                replica: replica.clone(),
                at_ms: now_ms,
            };
            changed.quarantined.push(quarantined);
        }
        if changed.quarantined.len() > QUARANTINED_MAX {
            changed.quarantined.remove(0);
        }
        changed.history.retain(|former| former.as_ref() != Some(digest));
        if changed.pending.as_ref().is_some_and(|pending| pending.digest == *digest) {
            changed = changed.end_pending("quarantined", why, Some(replica), now_ms);
        }
        let is_current = changed.current.as_ref() == Some(digest);
        if is_current { Self { version: self.version + 1, ..changed.back(now_ms) } } else { changed }
    }

    /// This document over one that is behind it, because the store forgot; of former generations, those that `has` still knows.
    #[must_use]
    pub fn restored(&self, over: &Self, has: impl Fn(&Digest) -> bool) -> Self {
        let mut restored = Self { version: self.version.max(over.version) + 1, pending: None, ..self.clone() };
        restored.history.retain(|former| former.as_ref().is_none_or(&has));
        restored
    }

    /// Why a digest is in quarantine, if it is.
    #[must_use]
    pub fn quarantine_of(&self, digest: &str) -> Option<&QuarantinedDigest> {
        self.quarantined.iter().find(|quarantined| *quarantined.digest == *digest)
    }

    /// The modules that the document needs kept.
    #[must_use]
    pub fn modules(&self) -> BTreeSet<Digest> {
        let former = self.history.iter().flatten();
        let pending = self.pending.iter().map(|pending| &pending.digest);
        let quarantined = self.quarantined.iter().map(|quarantined| &quarantined.digest);
        self.current.iter().chain(former).chain(pending).chain(quarantined).cloned().collect()
    }

    fn next(&self) -> Self {
        Self { version: self.version + 1, ..self.clone() }
    }

    /// The store's clock may have been set back.
    fn later(&self, now_ms: u64) -> u64 {
        now_ms.max(self.since_ms + 1)
    }

    /// What serves leaves for good; the newest of what served before, else the native rule, takes its place.
    fn back(&self, now_ms: u64) -> Self {
        let mut history = self.history.clone();
        let current = if history.is_empty() { None } else { history.remove(0) };
        // It may be the very one that was pushed again.
        let pending = self.pending.clone().filter(|pending| current.as_ref() != Some(&pending.digest));
        Self { current, since_ms: self.later(now_ms), history, pending, ..self.next() }
    }

    fn end_pending(&self, kind: &str, message: &str, replica: Option<&Uid>, now_ms: u64) -> Self {
        let mut ended = self.clone();
        if let Some(pending) = ended.pending.take() {
            ended.failed = Some(FailedPush {
                digest: pending.digest,
                pushed_ms: pending.pushed_ms,
                replica: replica.cloned(),
                kind: kind.to_owned(),
                message: message.to_owned(),
                at_ms: now_ms,
            });
        }
        ended
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pushed(document: &Document, digest: &str) -> Document {
        document.push(&digest.into(), false, 10).unwrap().unwrap()
    }

    fn served(digests: &[&str]) -> Document {
        digests.iter().fold(Document::default(), |document, digest| pushed(&document, digest).moved(20))
    }

    #[test]
    fn what_served_is_kept_for_undo_up_to_a_bound() {
        let document = served(&["a", "b", "c", "d", "e"]);
        let history =
            |document: &Document| document.history.iter().map(Option::as_deref).collect::<Vec<_>>().join_all();
        assert_eq!(history(&document), "d c b");
        assert_eq!(document.version, 10);
        let back = document.undo(30).unwrap();
        assert_eq!((back.current.as_deref(), history(&back).as_str()), (Some("d"), "c b"));
        let none = back.undo(31).unwrap().undo(32).unwrap();
        assert_eq!((none.current.as_deref(), none.undo(33)), (Some("b"), Err(NothingToUndo)));
        assert_eq!(history(&pushed(&document, "c").moved(40)), "e d b", "nothing is kept twice");
    }

    #[test]
    fn the_native_rule_served_before_the_first_push() {
        let document = served(&["a"]);
        let native = document.undo(30).unwrap();
        assert_eq!((native.current, native.history), (None, vec![]));
        assert!(Document::default().undo(1).is_err());
    }

    #[test]
    fn one_push_at_a_time() {
        let document = pushed(&served(&["a"]), "b");
        assert!(matches!(document.push(&"c".into(), true, 11), Err(PushRefused::Pending(_))));
        assert_eq!(served(&["a"]).push(&"a".into(), false, 11), Ok(None));
        let failed = document.fail(Some(&"r".into()), "link", "why", 12);
        assert_eq!((failed.current.as_deref(), failed.since_ms), (Some("a"), document.since_ms));
        let again = pushed(&failed, "b");
        let (first, second) = (document.pending.unwrap(), again.pending.unwrap());
        assert!(second.pushed_ms > first.pushed_ms, "a push is named by its time");
    }

    #[test]
    fn an_undo_ends_a_push_and_says_so() {
        let pushed_over = pushed(&served(&["a", "b"]), "c");
        let undone = pushed_over.undo(50).unwrap();
        assert_eq!(
            (undone.current.as_deref(), &undone.pending, undone.since_ms),
            (Some("b"), &None, pushed_over.since_ms)
        );
        assert_eq!(undone.failed.as_ref().unwrap().kind, "undone");
        assert_eq!((pushed_over.undoes_to(), undone.undoes_to().map(AsRef::as_ref)), (None, Some("a")));
        assert_eq!(undone.undo(51).unwrap().current.as_deref(), Some("a"), "a second one goes back");
        let first = pushed(&Document::default(), "a").undo(50).unwrap();
        assert_eq!((first.current, first.pending), (None, None), "the first push too can be ended");
    }

    #[test]
    fn quarantine_takes_the_pointer_back_and_holds_until_a_retry() {
        let document = served(&["a", "b"]).quarantine(&"b".into(), "traps", &"r".into(), 30);
        assert_eq!((document.current.as_deref(), document.version), (Some("a"), 5));
        assert!(matches!(document.push(&"b".into(), true, 31), Err(PushRefused::Quarantined(_))));
        assert!(document.modules().contains("b"), "it is kept for a retry");
        let retried = document.retry(&"b".into(), true, false, 32).unwrap();
        assert_eq!((retried.pending.unwrap().digest.as_ref(), retried.quarantined.len()), ("b", 0));
        let freed = document.retry(&"b".into(), false, false, 32).unwrap();
        assert_eq!((freed.pending, freed.quarantined.len()), (None, 0), "its module is not stored any more");
        assert!(document.retry(&"c".into(), true, false, 32).is_err());
        let first = served(&["a"]).quarantine(&"a".into(), "traps", &"r".into(), 30);
        assert_eq!(first.current, None);
        let pushed = pushed(&served(&["a"]), "b").quarantine(&"b".into(), "traps", &"r".into(), 30);
        assert_eq!((pushed.current.as_deref(), pushed.failed.unwrap().kind.as_str()), (Some("a"), "quarantined"));
    }

    #[test]
    fn quarantine_has_a_bound() {
        let mut document = served(&["a"]);
        for n in 0..QUARANTINED_MAX + 4 {
            document = document.quarantine(&n.to_string().into(), "traps", &"r".into(), 30);
        }
        assert_eq!((document.quarantined.len(), &*document.quarantined[0].digest), (QUARANTINED_MAX, "4"));
    }

    #[test]
    fn a_store_that_forgot_gets_back_what_is_known() {
        let known = served(&["a", "b", "c"]);
        let restored = known.restored(&Document::default(), |digest| &**digest == "b");
        assert_eq!((restored.since_ms, restored.version), (known.since_ms, known.version + 1));
        assert_eq!(restored.history, [Some("b".into()), None]);
    }

    trait JoinAll {
        fn join_all(&self) -> String;
    }

    impl JoinAll for Vec<Option<&str>> {
        fn join_all(&self) -> String {
            self.iter().map(|former| former.unwrap_or("native")).collect::<Vec<_>>().join(" ")
        }
    }
}
