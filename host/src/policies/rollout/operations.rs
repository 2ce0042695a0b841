//! Carries out what operators ask for: push, undo, retry and pull. Operators can ask any replica.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pointwork_core::rollout::{Digest, Document};
use pointwork_policy::SlotName;

use super::error::RolloutError;
use super::state::{RolloutState, Rollouts};
use crate::policies::PolicyModule;

/// How often a change is tried because another one was faster.
const TRIES_MAX: usize = 8;
/// How often an undo is tried because its target changed.
const UNDO_TRIES_MAX: usize = 3;
/// How long each try waits until the replicas have filled an emptied Redis again.
const RESTORE_WAIT: Duration = Duration::from_millis(250);

/// The shortest text that is accepted as the beginning of a digest.
const PREFIX_DIGITS_MIN: usize = 12;

/// A change that is under way, or was not needed.
#[derive(Debug, Clone, serde::Serialize)]
pub struct RolloutChange {
    /// The generation that will serve; `None` for the native rule.
    pub digest: Option<String>,
    /// The version of the document that contains the change.
    pub version: u64,
    /// Identifies the push; `None` when nothing has to be prepared.
    pub pushed_ms: Option<u64>,
    /// False when the document did not have to change.
    pub changed: bool,
    /// Whether only arms with this digest on this replica are concerned, and not the shared document.
    pub arms: bool,
}

/// Computes the next document from the current one, the store's clock, and whether the module is stored; `None` when nothing has to
/// change.
type DocumentChange<'a> = &'a (dyn Fn(&Document, u64, bool) -> Result<Option<Document>, RolloutError> + Sync);

impl Rollouts {
    /// Makes every replica prepare a module and then serve it, if all can; with `force`, those serve it that can. Returns when the
    /// push is announced.
    ///
    /// # Errors
    /// See [`RolloutError`].
    pub async fn push(&self, slot: SlotName, module: PolicyModule, force: bool) -> Result<RolloutChange, RolloutError> {
        let state = self.state()?;
        let digest = Digest::from(module.digest().to_string());
        let push = |document: &Document, now_ms: u64, _: bool| Ok(document.push(&digest, force, now_ms)?);
        state.change(slot, &digest, Some(&module), &push).await
    }

    /// Ends a push under way. Without one, goes back to the former generation at once.
    ///
    /// # Errors
    /// See [`RolloutError`].
    pub async fn undo(&self, slot: SlotName) -> Result<RolloutChange, RolloutError> {
        let state = self.state()?;
        for _ in 1..UNDO_TRIES_MAX {
            match state.undo(slot).await {
                Err(RolloutError::Raced) => {}
                undone => return undone,
            }
        }
        state.undo(slot).await
    }

    /// Takes a digest out of quarantine on every replica, and pushes it again if its module is still stored. If the digest is not in
    /// quarantine, but arms with it have tripped on this replica, these arms answer again.
    ///
    /// # Errors
    /// See [`RolloutError`].
    pub async fn retry(&self, slot: SlotName, digest: &str, force: bool) -> Result<RolloutChange, RolloutError> {
        let state = self.state()?;
        let (_, read, _) = state.store.read(slot, "").await?;
        let known = read.document.quarantined.iter().map(|quarantined| &quarantined.digest);
        let digest = resolve(known, digest);
        if read.document.quarantine_of(&digest).is_none()
            && let Some(digest) = state.retry_arms(slot, &digest)
        {
            let unchanged = changed(&read.document, true);
            return Ok(RolloutChange { digest: Some(digest), pushed_ms: None, arms: true, ..unchanged });
        }
        let retry = |document: &Document, now_ms: u64, is_stored: bool| {
            Ok(Some(document.retry(&digest, is_stored, force, now_ms)?))
        };
        state.change(slot, &digest, None, &retry).await
    }

    /// Reads a module and its digest: the module that serves, or another one that the document names.
    ///
    /// # Errors
    /// See [`RolloutError`].
    pub async fn module(&self, slot: SlotName, digest: Option<&str>) -> Result<(Digest, PolicyModule), RolloutError> {
        let state = self.state()?;
        let (_, read, _) = state.store.read(slot, "").await?;
        let digest = match digest {
            Some(digest) => resolve(read.document.modules().iter(), digest),
            None => read.document.current.ok_or(RolloutError::Native)?,
        };
        let module = state.store.module(slot, &digest).await?;
        module.map(|module| (digest.clone(), module)).ok_or_else(|| RolloutError::NoModule(digest.to_string()))
    }

    fn state(&self) -> Result<&Arc<RolloutState>, RolloutError> {
        self.0.as_ref().ok_or(RolloutError::Directory)
    }
}

impl RolloutState {
    /// Changes a document by compare-and-set. `module` is stored with it.
    async fn change(
        &self,
        slot: SlotName,
        digest: &Digest,
        module: Option<&PolicyModule>,
        change: DocumentChange<'_>,
    ) -> Result<RolloutChange, RolloutError> {
        for _ in 0..TRIES_MAX {
            let (now_ms, read, is_stored) = self.store.read(slot, digest).await?;
            if self.slot(slot).lock().follower.is_ahead(&read.document) {
                // A change that is written now is lost when the newest document is restored.
                self.news.notify_one();
                tokio::time::sleep(RESTORE_WAIT).await;
                continue;
            }
            let Some(next) = change(&read.document, now_ms, is_stored)? else {
                return Ok(changed(&read.document, false));
            };
            let pushed = module.map(|module| (digest, module, now_ms));
            if self.store.write(slot, &read, &next, pushed).await? {
                self.news.notify_one();
                self.replicas.tell_policy_news();
                return Ok(changed(&next, true));
            }
        }
        Err(RolloutError::Raced)
    }

    /// Tries one undo. It is raced when the target changes meanwhile.
    async fn undo(&self, slot: SlotName) -> Result<RolloutChange, RolloutError> {
        let (_, read, _) = self.store.read(slot, "").await?;
        let back_to = read.document.undoes_to().cloned();
        let digest = back_to.clone().unwrap_or_else(|| Digest::from(""));
        let undo = |document: &Document, now_ms: u64, is_stored: bool| {
            let next = document.undo(now_ms)?;
            if document.undoes_to() != back_to.as_ref() {
                return Err(RolloutError::Raced);
            }
            // A module that this replica has is stored again when it serves.
            if back_to.is_some() && !is_stored && !self.slot(slot).lock().modules.contains_key(&digest) {
                return Err(RolloutError::Lost(digest.to_string()));
            }
            Ok(Some(next))
        };
        self.change(slot, &digest, None, &undo).await
    }

    /// Lets the tripped arms with a digest answer again. Returns the whole digest.
    fn retry_arms(&self, slot: SlotName, given: &str) -> Option<String> {
        let arms = self.policies.slot_status(slot).arms;
        let tripped: BTreeMap<_, _> = arms
            .iter()
            .filter(|arm| arm.tripped)
            .map(|arm| (Digest::from(arm.digest.to_string()), arm.digest))
            .collect();
        let digest = resolve(tripped.keys(), given);
        let is_retried = self.policies.retry(slot, tripped.get(&digest)?);
        is_retried.then(|| digest.to_string())
    }
}

/// The only digest among `known` that begins with `given`, if `given` is long enough; else `given` itself.
fn resolve<'a>(known: impl Iterator<Item = &'a Digest>, given: &str) -> Digest {
    let mut found = known.filter(|digest| given.len() >= PREFIX_DIGITS_MIN && digest.starts_with(given));
    match (found.next(), found.next()) {
        (Some(digest), None) => digest.clone(),
        _ => Digest::from(given),
    }
}

fn changed(document: &Document, changed: bool) -> RolloutChange {
    let pending = document.pending.as_ref();
    let digest = pending.map(|pending| &pending.digest).or(document.current.as_ref());
    RolloutChange {
        digest: digest.map(ToString::to_string),
        version: document.version,
        pushed_ms: pending.map(|pending| pending.pushed_ms),
        changed,
        arms: false,
    }
}
