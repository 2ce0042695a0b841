//! Carries out the steps of the rollout machine.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pointwork_core::rollout::{Digest, Document, RolloutStep};
use pointwork_policy::{Digest as EngineDigest, SlotName};

use super::state::RolloutState;
use super::store::{RolloutStoreError, StoredDocument};

/// What follows a step.
pub(super) enum AfterStep {
    /// The next step on what was read.
    Step,
    /// Another read.
    Read,
    /// A pause until there is news or time has passed.
    Wait,
}

impl RolloutState {
    pub(super) async fn carry_out(
        self: &Arc<Self>,
        slot: SlotName,
        step: RolloutStep,
        read: &StoredDocument,
        now_ms: u64,
    ) -> AfterStep {
        match step {
            RolloutStep::Prepare(digest) => self.prepare(slot, digest),
            RolloutStep::Switch(digest) => self.switch(slot, &digest, now_ms),
            RolloutStep::Unload => self.policies.unload(slot),
            RolloutStep::Quarantine(digest, why) => {
                self.slot(slot).lock().prepared.remove(&digest);
                if let Ok(digest) = digest.parse::<EngineDigest>() {
                    self.policies.quarantine(slot, digest, &why);
                }
            }
            RolloutStep::Free(digest) => {
                if let Ok(digest) = digest.parse::<EngineDigest>() {
                    self.policies.retry(slot, &digest);
                }
            }
            RolloutStep::Discard(digest) => drop(self.slot(slot).lock().prepared.remove(&digest)),
            RolloutStep::Store(digest) => return self.after_write(self.store_again(slot, [&digest], now_ms).await),
            RolloutStep::Write(document) => return self.write(slot, read, &document).await,
            RolloutStep::Restore(document) => {
                tracing::warn!(%slot, "Redis has forgotten what serves, and is told");
                let modules = document.modules();
                if let Err(error) = self.store_again(slot, &modules, now_ms).await {
                    return self.after_write(Err(error));
                }
                return self.write(slot, read, &document).await;
            }
        }
        AfterStep::Step
    }

    fn switch(&self, slot: SlotName, digest: &Digest, now_ms: u64) {
        let prepared = self.slot(slot).lock().prepared.remove(digest);
        let switched = prepared.map(|policy| self.policies.switch(policy));
        let (kind, problem) = match switched {
            Some(Ok(_)) => return,
            Some(Err(error)) => (error.kind(), error.to_string()),
            None => ("unreadable", "it was prepared and is gone".to_owned()),
        };
        self.slot(slot).lock().follower.refused(digest, kind, &problem, now_ms);
    }

    async fn write(&self, slot: SlotName, read: &StoredDocument, document: &Document) -> AfterStep {
        let written = self.store.write(slot, read, document, None).await;
        if written == Ok(true) {
            report_change(slot, &read.document, document);
            self.replicas.tell_policy_news();
        }
        self.after_write(written.map(drop))
    }

    async fn store_again<'a>(
        &self,
        slot: SlotName,
        digests: impl IntoIterator<Item = &'a Digest>,
        now_ms: u64,
    ) -> Result<(), RolloutStoreError> {
        for digest in digests {
            let module = self.slot(slot).lock().modules.get(digest).cloned();
            if let Some(module) = module {
                self.store.put(slot, digest, &module, now_ms).await?;
            }
        }
        Ok(())
    }

    fn after_write(&self, done: Result<(), RolloutStoreError>) -> AfterStep {
        match done {
            Ok(()) => AfterStep::Read,
            Err(error) => {
                self.note_away(&error);
                AfterStep::Wait
            }
        }
    }

    /// Notes that Redis cannot be read or written. Before the first read, the connection logs that.
    pub(super) fn note_away(&self, error: &RolloutStoreError) {
        let is_starting = matches!(error, RolloutStoreError::Away(_)) && !self.was_read.load(Ordering::Relaxed);
        if !is_starting && !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, "what the cluster says of policies cannot be read: what serves goes on serving");
        }
    }
}

/// Counts and logs a change of the shared document, on the replica that made it.
fn report_change(slot: SlotName, was: &Document, is: &Document) {
    let current = is.current.as_deref().unwrap_or("the native rule");
    if is.current != was.current {
        metrics::counter!("pointwork_policy_rollouts_total", "slot" => slot.as_str(), "result" => "moved").increment(1);
        tracing::info!(%slot, digest = current, "the pointer of the cluster moves");
    }
    if let Some(failed) = is.failed.as_ref().filter(|_| is.failed != was.failed) {
        metrics::counter!("pointwork_policy_rollouts_total", "slot" => slot.as_str(), "result" => "failed")
            .increment(1);
        let replica = failed.replica.as_deref().unwrap_or("none");
        tracing::warn!(%slot, digest = &*failed.digest, replica, kind = failed.kind, "a push failed: {}", failed.message);
    }
}
