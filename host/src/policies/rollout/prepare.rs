//! Prepares policies on a thread of their own, beside the serving ones.

use std::sync::{Arc, Weak, mpsc};
use std::thread;

use pointwork_core::rollout::Digest;
use pointwork_policy::{LoadError, SlotName};
use socketioxide_redis_streams::transport::TransportError;

use super::store::{Module, StoreError};
use super::{Shared, codec};
use crate::policies::panic_message::caught;

/// One policy to prepare. There is at most one of each slot.
pub(super) struct Job {
    slot: SlotName,
    digest: Digest,
    module: Module,
}

/// Starts the thread, which ends with the last of `shared`.
pub(super) fn start(shared: &Arc<Shared>, jobs: mpsc::Receiver<Job>) -> std::io::Result<()> {
    let shared = Arc::downgrade(shared);
    thread::Builder::new().name("policy-rollout".into()).spawn(move || work(&shared, &jobs)).map(drop)
}

fn work(shared: &Weak<Shared>, jobs: &mpsc::Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        let Some(shared) = shared.upgrade() else { return };
        let Job { slot, digest, module } = job;
        let prepared = caught(|| shared.policies.prepare(slot, &module.wasm, &module.config));
        let refusal = |error: LoadError| (error.kind(), error.to_string());
        let prepared = prepared.map_or_else(|panic| Err(("panic", panic)), |prepared| prepared.map_err(refusal));
        let mut place = shared.place(slot).lock();
        match prepared {
            Ok(policy) => {
                place.held.insert(digest.clone(), policy);
                place.follower.prepared(&digest);
            }
            Err((kind, error)) => {
                tracing::warn!(%slot, %digest, kind, %error, "a policy of the cluster cannot be prepared here");
                let now_ms = place.now_ms;
                place.follower.refused(&digest, kind, &codec::bounded(&error), now_ms);
            }
        }
        drop(place);
        shared.news.notify_one();
    }
}

impl Shared {
    /// Fetches a module, unless it is here, and has it prepared. The machine hears of the end.
    pub(super) fn prepare(self: &Arc<Self>, slot: SlotName, digest: Digest) {
        let this = self.clone();
        tokio::spawn(async move {
            let fetched = this.fetch(slot, &digest).await;
            this.hand_over(slot, digest, fetched);
            this.news.notify_one();
        });
    }

    fn hand_over(&self, slot: SlotName, digest: Digest, fetched: Result<Module, Unfetched>) {
        let mut place = self.place(slot).lock();
        let now_ms = place.now_ms;
        let problem = match fetched {
            Ok(module) => {
                place.modules.insert(digest.clone(), module.clone());
                place.follower.keep(digest.clone());
                match self.jobs.send(Job { slot, digest: digest.clone(), module }) {
                    Ok(()) => return,
                    Err(_) => "the thread that prepares policies is gone".to_owned(),
                }
            }
            Err(Unfetched::Store(StoreError::Away(error))) if is_passing(&error) => {
                let wait_ms = place.follower.postponed(&digest, "unreadable", &error.to_string(), now_ms);
                drop(place);
                tracing::warn!(%slot, %digest, %error, wait_ms, "the module of a policy cannot be had from Redis, and is asked for again");
                return;
            }
            Err(error) => error.to_string(),
        };
        place.follower.refused(&digest, "unreadable", &problem, now_ms);
    }

    async fn fetch(&self, slot: SlotName, digest: &Digest) -> Result<Module, Unfetched> {
        let kept = self.place(slot).lock().modules.get(digest).cloned();
        if let Some(module) = kept {
            return Ok(module);
        }
        let module = self.store.module(slot, digest).await?.ok_or(Unfetched::Missing)?;
        let found = pointwork_policy::Digest::of_generation(&module.wasm, &module.config);
        if *found.to_string() == **digest { Ok(module) } else { Err(Unfetched::Other(found.to_string())) }
    }
}

/// Whether the same question may be answered a while later; a refusal stays one.
fn is_passing(error: &TransportError) -> bool {
    matches!(error, TransportError::Disconnected(_) | TransportError::Timeout | TransportError::Closed)
}

#[derive(Debug, thiserror::Error)]
enum Unfetched {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("its module is not in Redis any more")]
    Missing,
    #[error("Redis holds another module by that digest, {0}")]
    Other(String),
}
