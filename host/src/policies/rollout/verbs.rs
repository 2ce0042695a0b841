//! What operators do: push, undo, retry, pull. Each is taken by any replica and done by all.

use pointwork_core::rollout::{Digest, Document, NothingToUndo, PushRefused, RetryRefused};
use pointwork_policy::SlotName;

use super::store::{Module, Read, StoreError};
use super::{Rollouts, Shared};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often a change is tried again because another was faster.
const TRIES_MAX: usize = 8;
/// How often an undo looks anew where it would go back to.
const UNDO_LOOKS_MAX: usize = 3;
/// How long it is waited for replicas to fill an emptied Redis again, each time.
const RESTORE_WAIT: Duration = Duration::from_millis(250);

/// The least that is taken for the beginning of a digest.
const PREFIX_DIGITS_MIN: usize = 12;

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RolloutError {
    /// The policy directory rules.
    #[error(
        "policy.source is `directory`: what lies in policy.dir serves, and is changed there; with policy.source = \"cluster\" it is pushed"
    )]
    Directory,
    /// Redis is away or holds what is not understood.
    #[error("{0}; what serves goes on serving, and nothing is changed until Redis is back")]
    Store(#[from] StoreError),
    /// See [`PushRefused`].
    #[error(transparent)]
    Push(#[from] PushRefused),
    /// See [`NothingToUndo`].
    #[error(transparent)]
    Undo(#[from] NothingToUndo),
    /// See [`RetryRefused`].
    #[error(transparent)]
    Retry(#[from] RetryRefused),
    /// The digest is not one that the slot's document names.
    #[error(
        "there is no module {0} of this slot: it is kept while it serves, may be gone back to, or is in quarantine"
    )]
    NoModule(String),
    /// What served before is neither in Redis nor at the replica that was asked.
    #[error("the module {0} that an undo would go back to is not stored any more, nor here: push what is to serve")]
    Lost(String),
    /// Nothing was pushed.
    #[error("the native rule serves this slot: there is no module")]
    Native,
    /// Others changed it all the time.
    #[error("others changed this slot at the same time: look, and try again")]
    Raced,
}

/// What was asked for is under way, or there already.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Changed {
    /// What is to serve; `None`: the native rule.
    pub digest: Option<String>,
    /// The document's version with the change in it.
    pub version: u64,
    /// Names the push; absent when nothing has to be prepared.
    pub pushed_ms: Option<u64>,
    /// False when it was so already.
    pub changed: bool,
    /// It concerns arms of this digest on the replica that was asked, and nothing that is shared.
    pub arms: bool,
}

/// The document that a change makes, of what is there, the store's clock, and whether the module in question is stored; `None`: it is
/// so already.
type Change<'a> = &'a (dyn Fn(&Document, u64, bool) -> Result<Option<Document>, RolloutError> + Sync);

impl Rollouts {
    /// Has every replica prepare a module, and then all serve it, or none; with `force` those that can. Returns when the push is
    /// known to all.
    ///
    /// # Errors
    /// See [`RolloutError`].
    pub async fn push(&self, slot: SlotName, module: Module, force: bool) -> Result<Changed, RolloutError> {
        let shared = self.shared()?;
        let digest = Digest::from(pointwork_policy::Digest::of_generation(&module.wasm, &module.config).to_string());
        let push = |document: &Document, now_ms: u64, _: bool| Ok(document.push(&digest, force, now_ms)?);
        shared.change(slot, &digest, Some(&module), &push).await
    }

    /// Ends a push under way; without one, back to what served before, at once.
    ///
    /// # Errors
    /// See [`RolloutError`].
    pub async fn undo(&self, slot: SlotName) -> Result<Changed, RolloutError> {
        let shared = self.shared()?;
        for _ in 1..UNDO_LOOKS_MAX {
            match shared.undo(slot).await {
                Err(RolloutError::Raced) => {}
                undone => return undone,
            }
        }
        shared.undo(slot).await
    }

    /// Takes a digest out of quarantine on every replica, and pushes it again if its module is still stored. One that is in none, but
    /// of whose arms some have tripped here, is asked again here.
    ///
    /// # Errors
    /// See [`RolloutError`].
    pub async fn retry(&self, slot: SlotName, digest: &str, force: bool) -> Result<Changed, RolloutError> {
        let shared = self.shared()?;
        let (_, read, _) = shared.store.read(slot, "").await?;
        let known = read.document.quarantined.iter().map(|quarantined| &quarantined.digest);
        let digest = resolve(known, digest);
        if read.document.quarantine_of(&digest).is_none()
            && let Some(digest) = shared.retry_arms(slot, &digest)
        {
            let unchanged = changed(&read.document, true);
            return Ok(Changed { digest: Some(digest), pushed_ms: None, arms: true, ..unchanged });
        }
        let retry = |document: &Document, now_ms: u64, is_stored: bool| {
            Ok(Some(document.retry(&digest, is_stored, force, now_ms)?))
        };
        shared.change(slot, &digest, None, &retry).await
    }

    /// A module and its digest: the one that serves, or another that the document names.
    ///
    /// # Errors
    /// See [`RolloutError`].
    pub async fn module(&self, slot: SlotName, digest: Option<&str>) -> Result<(Digest, Module), RolloutError> {
        let shared = self.shared()?;
        let (_, read, _) = shared.store.read(slot, "").await?;
        let digest = match digest {
            Some(digest) => resolve(read.document.modules().iter(), digest),
            None => read.document.current.ok_or(RolloutError::Native)?,
        };
        let module = shared.store.module(slot, &digest).await?;
        module.map(|module| (digest.clone(), module)).ok_or_else(|| RolloutError::NoModule(digest.to_string()))
    }

    fn shared(&self) -> Result<&Arc<Shared>, RolloutError> {
        self.0.as_ref().ok_or(RolloutError::Directory)
    }
}

impl Shared {
    /// Changes a document: reads it, and writes what `change` makes of it unless another was faster; then again.
    async fn change(
        &self,
        slot: SlotName,
        digest: &Digest,
        module: Option<&Module>,
        change: Change<'_>,
    ) -> Result<Changed, RolloutError> {
        for _ in 0..TRIES_MAX {
            let (now_ms, read, is_stored) = self.store.read(slot, digest).await?;
            if self.place(slot).lock().follower.is_ahead(&read.document) {
                // What is written now would be lost when the newest is put back.
                self.news.notify_one();
                tokio::time::sleep(RESTORE_WAIT).await;
                continue;
            }
            let Some(next) = change(&read.document, now_ms, is_stored)? else {
                return Ok(changed(&read.document, false));
            };
            if self.write_change(slot, &read, &next, module.map(|module| (digest, module, now_ms))).await? {
                return Ok(changed(&next, true));
            }
        }
        Err(RolloutError::Raced)
    }

    /// One undo of what the document names now; raced when it names another one by then.
    async fn undo(&self, slot: SlotName) -> Result<Changed, RolloutError> {
        let (_, read, _) = self.store.read(slot, "").await?;
        let back_to = read.document.undoes_to().cloned();
        let digest = back_to.clone().unwrap_or_else(|| Digest::from(""));
        let undo = |document: &Document, now_ms: u64, is_stored: bool| {
            let next = document.undo(now_ms)?;
            if document.undoes_to() != back_to.as_ref() {
                return Err(RolloutError::Raced);
            }
            // What is kept here is put back into the store once it serves.
            if back_to.is_some() && !is_stored && !self.place(slot).lock().modules.contains_key(&digest) {
                return Err(RolloutError::Lost(digest.to_string()));
            }
            Ok(Some(next))
        };
        self.change(slot, &digest, None, &undo).await
    }

    /// Tripped arms of a digest, or of the one that begins so, are asked again; gives it whole.
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

    async fn write_change(
        &self,
        slot: SlotName,
        read: &Read,
        next: &Document,
        pushed: Option<(&Digest, &Module, u64)>,
    ) -> Result<bool, StoreError> {
        let is_written = self.store.write(slot, read, next, pushed).await?;
        if is_written {
            self.news.notify_one();
            self.replicas.tell_policy_news();
        }
        Ok(is_written)
    }
}

/// The one digest among `known` that begins with `given`, if that is long enough; else `given` as it is.
fn resolve<'a>(known: impl Iterator<Item = &'a Digest>, given: &str) -> Digest {
    let mut found = known.filter(|digest| given.len() >= PREFIX_DIGITS_MIN && digest.starts_with(given));
    match (found.next(), found.next()) {
        (Some(digest), None) => digest.clone(),
        _ => Digest::from(given),
    }
}

fn changed(document: &Document, changed: bool) -> Changed {
    let pending = document.pending.as_ref();
    let digest = pending.map(|pending| &pending.digest).or(document.current.as_ref());
    Changed {
        digest: digest.map(ToString::to_string),
        version: document.version,
        pushed_ms: pending.map(|pending| pending.pushed_ms),
        changed,
        arms: false,
    }
}
