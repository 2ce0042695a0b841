//! Loads the modules of arms into the engine.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use pointwork_core::experiments::{ArmModule, Experiment, ExperimentStatus, Experiments as ExperimentList, Slot};
use tokio::time::Instant;

use super::{state::Experiments, store::ExperimentStoreError};
use crate::policies::slots::{PreparedPolicy, engine_slot};

/// How soon an arm that could not be loaded is tried again.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(10);

impl Experiments {
    /// Loads the arms of running experiments that are not loaded yet, and sends decisions to them.
    pub(super) async fn load_arms(&self) {
        let _one_at_a_time = self.loading.lock().await;
        let known = self.state.lock().known.clone().unwrap_or_default();
        for experiment in known.list.iter().filter(|experiment| experiment.status == ExperimentStatus::Running) {
            let mut is_news = false;
            for arm in 0..experiment.arms.len() {
                is_news |= self.load_arm(experiment, arm).await;
            }
            if is_news {
                let _one_at_a_time = self.applying.lock().await;
                // The experiments may have changed meanwhile.
                let known = self.state.lock().known.clone().unwrap_or_default();
                self.assign(&known);
            }
        }
    }

    /// Loads an arm's module into the engine, if the arm has its own. Returns whether it was loaded now or failed now.
    async fn load_arm(&self, experiment: &Experiment, arm: usize) -> bool {
        let Some((name, digest)) = own_module(experiment, arm) else { return false };
        {
            let state = self.state.lock();
            let is_loaded = state.loaded.get(&name).is_some_and(|loaded| **loaded == *digest);
            let has_just_failed = state.failed.get(&name).is_some_and(|(_, at)| at.elapsed() < RETRY_AFTER);
            if is_loaded || has_just_failed {
                return false;
            }
        }
        match self.prepared(experiment.slot, digest).await {
            Ok(None) => return false,
            Ok(Some(prepared)) => match self.policies.set_arm(name.clone(), prepared) {
                Ok(()) => {
                    tracing::info!(experiment = experiment.name, arm = &*name, digest, "an arm is loaded");
                    let mut state = self.state.lock();
                    state.failed.remove(&name);
                    state.loaded.insert(name.clone(), digest.into());
                }
                Err(error) => self.note_failed(&name, error.to_string()),
            },
            Err(why) => self.note_failed(&name, why),
        }
        true
    }

    fn note_failed(&self, name: &Arc<str>, why: String) {
        let mut state = self.state.lock();
        if state.failed.get(name).is_none_or(|(before, _)| *before != why) {
            tracing::warn!(arm = &**name, why, "an arm cannot be loaded: its decisions count as its failures");
        }
        state.failed.insert(name.clone(), (why, Instant::now()));
    }

    /// Reads a module from the store and prepares it; `None` while the store is away.
    pub(super) async fn prepared(&self, slot: Slot, digest: &str) -> Result<Option<PreparedPolicy>, String> {
        let module = match self.store.module(digest).await {
            Ok(Some(module)) => module,
            Ok(None) => return Err("its module is not stored any more".to_owned()),
            Err(ExperimentStoreError::Away(_)) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let policies = self.policies.clone();
        let prepare = move || policies.prepare(engine_slot(slot), &module.wasm, &module.config);
        match tokio::task::spawn_blocking(prepare).await {
            Ok(Ok(prepared)) if prepared.digest().to_string() == *digest => Ok(Some(prepared)),
            Ok(Ok(_)) => Err("what is stored has another digest: it was written by another version".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The engine's names of the arms of running experiments.
pub(super) fn needed_arms(known: &ExperimentList) -> BTreeSet<Arc<str>> {
    let running = known.list.iter().filter(|experiment| experiment.status == ExperimentStatus::Running);
    let names = |experiment: &Experiment| -> Vec<Arc<str>> {
        let arms = 0..experiment.arms.len();
        arms.filter_map(|arm| own_module(experiment, arm)).map(|(name, _)| name).collect()
    };
    running.flat_map(names).collect()
}

/// The engine's name of an arm that has a module of its own, and its digest.
fn own_module(experiment: &Experiment, arm: usize) -> Option<(Arc<str>, &str)> {
    let ArmModule::Digest(digest) = &experiment.arms.get(arm)?.module else { return None };
    Some((engine_name(experiment, arm)?, digest))
}

/// The engine's name of an arm: `<experiment>/<arm>`.
pub(super) fn engine_name(experiment: &Experiment, arm: usize) -> Option<Arc<str>> {
    Some(format!("{}/{}", experiment.name, experiment.arms.get(arm)?.name).into())
}
