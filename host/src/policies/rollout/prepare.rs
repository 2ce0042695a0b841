//! Fetches modules, and prepares policies on a thread of its own.

use std::sync::{Arc, Weak, mpsc};
use std::thread;

use pointwork_core::rollout::Digest;
use pointwork_policy::{LoadError, SlotName};
use socketioxide_redis_streams::transport::TransportError;

use super::codec;
use super::state::{PrepareJob, RolloutState};
use super::store::RolloutStoreError;
use crate::policies::PolicyModule;
use crate::policies::panic_message::catch_panic;

/// Starts the thread. It ends with the rollouts.
pub(super) fn start(state: &Arc<RolloutState>, jobs: mpsc::Receiver<PrepareJob>) -> std::io::Result<()> {
    let state = Arc::downgrade(state);
    thread::Builder::new().name("policy-rollout".into()).spawn(move || work(&state, &jobs)).map(drop)
}

fn work(state: &Weak<RolloutState>, jobs: &mpsc::Receiver<PrepareJob>) {
    while let Ok(job) = jobs.recv() {
        let Some(state) = state.upgrade() else { return };
        let PrepareJob { slot, digest, module } = job;
        let prepared = catch_panic(|| state.policies.prepare(slot, &module.wasm, &module.config));
        let refusal = |error: LoadError| (error.kind(), error.to_string());
        let prepared = prepared.map_or_else(|panic| Err(("panic", panic)), |prepared| prepared.map_err(refusal));
        let mut of_slot = state.slot(slot).lock();
        match prepared {
            Ok(policy) => {
                of_slot.prepared.insert(digest.clone(), policy);
                of_slot.follower.prepared(&digest);
            }
            Err((kind, error)) => {
                tracing::warn!(%slot, %digest, kind, %error, "a policy of the cluster cannot be prepared here");
                let now_ms = of_slot.now_ms;
                of_slot.follower.refused(&digest, kind, &codec::bounded(&error), now_ms);
            }
        }
        drop(of_slot);
        state.news.notify_one();
    }
}

impl RolloutState {
    /// Fetches a module unless this replica has it, and prepares it. The machine learns the result.
    pub(super) fn prepare(self: &Arc<Self>, slot: SlotName, digest: Digest) {
        let this = self.clone();
        tokio::spawn(async move {
            let fetched = this.fetch(slot, &digest).await;
            this.hand_over(slot, digest, fetched);
            this.news.notify_one();
        });
    }

    fn hand_over(&self, slot: SlotName, digest: Digest, fetched: Result<PolicyModule, FetchError>) {
        let mut of_slot = self.slot(slot).lock();
        let now_ms = of_slot.now_ms;
        let problem = match fetched {
            Ok(module) => {
                of_slot.modules.insert(digest.clone(), module.clone());
                of_slot.follower.keep(digest.clone());
                match self.jobs.send(PrepareJob { slot, digest: digest.clone(), module }) {
                    Ok(()) => return,
                    Err(_) => "the thread that prepares policies is gone".to_owned(),
                }
            }
            Err(FetchError::Store(RolloutStoreError::Away(error))) if is_temporary(&error) => {
                let wait_ms = of_slot.follower.postponed(&digest, "unreadable", &error.to_string(), now_ms);
                drop(of_slot);
                tracing::warn!(%slot, %digest, %error, wait_ms, "the module of a policy cannot be had from Redis, and is asked for again");
                return;
            }
            Err(error) => error.to_string(),
        };
        of_slot.follower.refused(&digest, "unreadable", &problem, now_ms);
    }

    async fn fetch(&self, slot: SlotName, digest: &Digest) -> Result<PolicyModule, FetchError> {
        let kept = self.slot(slot).lock().modules.get(digest).cloned();
        if let Some(module) = kept {
            return Ok(module);
        }
        let module = self.store.module(slot, digest).await?.ok_or(FetchError::Missing)?;
        let found = module.digest().to_string();
        if *found == **digest { Ok(module) } else { Err(FetchError::OtherModule(found)) }
    }
}

/// Whether a later try can succeed. A refusal by Redis stays a refusal.
fn is_temporary(error: &TransportError) -> bool {
    matches!(error, TransportError::Disconnected(_) | TransportError::Timeout | TransportError::Closed)
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error(transparent)]
    Store(#[from] RolloutStoreError),
    #[error("its module is not in Redis any more")]
    Missing,
    #[error("Redis holds another module by that digest, {0}")]
    OtherModule(String),
}
