//! Checks the invariants of rollouts by what truly happened in the world.

use std::collections::{BTreeMap, BTreeSet};

use pointwork_core::rollout::{Digest, Document};

/// A push may outlive its timeout by the time in which somebody looks and writes, in milliseconds.
const LATE_MAX_MS: u64 = 5_000;

#[derive(Default)]
pub(crate) struct Auditor {
    /// What the document ever named.
    pointed: BTreeSet<Option<Digest>>,
    pub(crate) happened: BTreeMap<&'static str, usize>,
}

/// A replica that lives and is ready, at the moment of a write.
pub(crate) struct Ready<'a> {
    pub(crate) uid: &'a str,
    pub(crate) has: BTreeSet<Digest>,
}

impl Auditor {
    pub(crate) fn new() -> Self {
        Self { pointed: BTreeSet::from([None]), ..Self::default() }
    }

    pub(crate) fn note(&mut self, what: &'static str) {
        *self.happened.entry(what).or_default() += 1;
    }

    /// The document changed from `was` to `is`.
    pub(crate) fn written(&mut self, was: &Document, is: &Document, ready: &[Ready<'_>]) {
        assert!(is.version > was.version, "versions grow");
        assert!(is.since_ms >= was.since_ms, "newest-wins: the pointer went back in time");
        if is.current != was.current {
            self.moved(was, is, ready);
        }
        if let Some(failed) = is.failed.as_ref().filter(|_| is.failed != was.failed)
            && failed.kind != "quarantined"
            && was.pending.as_ref().is_some_and(|pending| pending.pushed_ms == failed.pushed_ms)
        {
            assert_eq!((&is.current, is.since_ms), (&was.current, was.since_ms), "a-failed-push-changes-nothing");
            self.note(match failed.kind.as_str() {
                "timeout" => "timeout",
                "undone" => "ended",
                _ => "failed",
            });
        }
        if is.quarantined.len() > was.quarantined.len() && was.version > 0 {
            self.note("quarantined");
        }
        let quarantined = |digest: &Digest| is.quarantine_of(digest).is_some();
        assert!(!is.current.as_ref().is_some_and(quarantined), "what is in quarantine serves");
        self.pointed.insert(is.current.clone());
    }

    fn moved(&mut self, was: &Document, is: &Document, ready: &[Ready<'_>]) {
        match &was.pending {
            // An undo and the breaker may go to the very generation that was pushed again; what served is forgotten by them.
            Some(pending)
                // Nor is what an emptied store is filled with anybody's push.
                if is.current.as_ref() == Some(&pending.digest)
                    && is.history.first() == Some(&was.current)
                    && is.since_ms >= pending.pushed_ms =>
            {
                for replica in ready.iter().filter(|_| !pending.force) {
                    let has = replica.has.contains(&pending.digest);
                    assert!(has, "all-or-forced: {} was not prepared for {}", replica.uid, pending.digest);
                }
                self.note(if pending.force { "forced" } else { "moved" });
            }
            _ => assert!(self.pointed.contains(&is.current), "undo-served: {:?} never served", is.current),
        }
    }

    pub(crate) fn switched(&self, digest: Option<&Digest>) {
        assert!(self.pointed.contains(&digest.cloned()), "only-what-was-pointed-to: {digest:?}");
    }

    pub(crate) fn time(&self, document: &Document, now_ms: u64, timeout_ms: u64) {
        if let Some(pending) = &document.pending {
            assert!(now_ms < pending.pushed_ms + timeout_ms + LATE_MAX_MS, "pushes-end: {pending:?} at {now_ms}");
        }
    }
}
