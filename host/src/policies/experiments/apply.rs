//! Applies a state of the experiments on this replica: assigns arms to slots, and clears arms that are no longer needed.

use std::{collections::BTreeSet, sync::Arc};

use pointwork_core::experiments::{ArmModule, Experiment, Experiments as ExperimentList, Slot};

use super::{
    load_arms::{engine_name, needed_arms},
    state::Experiments,
    store::ExperimentStoreError,
};
use crate::policies::{
    assignments::{ArmRule, RunningExperiment},
    slots::engine_slot,
};

impl Experiments {
    /// Reads the store and applies what is new.
    pub(super) async fn refresh(&self) {
        let read = self.store.read().await;
        let error = read.as_ref().err().map(ToString::to_string);
        // Redis is not connected yet at the start. If it stays away, the connection logs that.
        let is_starting = matches!(read, Err(ExperimentStoreError::Away(_))) && self.state.lock().known.is_none();
        if let Some(error) =
            error.as_ref().filter(|error| !is_starting && self.state.lock().error.as_ref() != Some(*error))
        {
            tracing::warn!(%error, "experiments cannot be read: they go on as they were");
        }
        self.state.lock().error = error;
        let Ok(read) = read else { return };
        let known = self.state.lock().known.clone().filter(|known| known.version > read.version);
        match known {
            // The store was restarted with an older state, or with none.
            Some(known) => match self.store.swap(read.version, &known).await {
                Ok(true) => tracing::warn!("the store had forgotten experiments and was told of them"),
                Ok(false) => {}
                Err(error) => {
                    // Their modules are lost too, so the store's state counts.
                    tracing::warn!(%error, "the store has forgotten experiments");
                    self.take_over(read).await;
                }
            },
            None => self.take_over(read).await,
        }
    }

    /// Applies a change that was made on this replica. When it returns, decisions go to the arms. Promotions: see `promote`.
    pub(super) async fn apply_change(&self, known: ExperimentList) {
        self.take_over(known).await;
        self.load_arms().await;
    }

    /// Applies what needs no further module: experiments that have ended or are paused stop deciding, and weights change.
    async fn take_over(&self, known: ExperimentList) {
        let _one_at_a_time = self.applying.lock().await;
        {
            let mut state = self.state.lock();
            let is_old = state.known.as_ref().is_some_and(|before| before.version > known.version && known.version > 0);
            if is_old {
                return;
            }
            state.known = Some(known.clone());
        }
        self.assign(&known);
        self.clear_arms(&needed_arms(&known));
    }

    /// Sends decisions to the arms of each running experiment whose arms are all loaded.
    pub(super) fn assign(&self, known: &ExperimentList) {
        for slot in Slot::ALL {
            let running = known.running(slot).and_then(|experiment| Some((experiment, self.rules(experiment)?)));
            let was = self.policies.assignments().running(slot);
            let next = running.map(|(experiment, rules)| match &was {
                Some(was) if was.experiment == *experiment && was.rules == rules => was.clone(),
                Some(was) => Arc::new(was.succeeded_by(experiment.clone(), rules)),
                None => Arc::new(RunningExperiment::new(experiment.clone(), rules, self.outbox.clone())),
            });
            self.policies.assignments().set(slot, next);
        }
    }

    /// What decides in each arm; `None` while an arm is not loaded yet, so the experiment has not begun on this replica.
    fn rules(&self, experiment: &Experiment) -> Option<Vec<ArmRule>> {
        let state = self.state.lock();
        let rule = |arm: usize| match &experiment.arms.get(arm)?.module {
            ArmModule::Current => Some(ArmRule::Current),
            ArmModule::Native => Some(ArmRule::Native),
            ArmModule::Digest(digest) => {
                let name = engine_name(experiment, arm)?;
                if state.loaded.get(&name) == Some(digest) {
                    Some(ArmRule::Loaded(name))
                } else {
                    state.failed.contains_key(&name).then_some(ArmRule::Failed)
                }
            }
        };
        (0..experiment.arms.len()).map(rule).collect()
    }

    /// Removes arms from the engine that no experiment needs any more.
    fn clear_arms(&self, needed: &BTreeSet<Arc<str>>) {
        let mut state = self.state.lock();
        state.failed.retain(|name, _| needed.contains(name));
        let gone: Vec<Arc<str>> = state.loaded.keys().filter(|name| !needed.contains(*name)).cloned().collect();
        for name in gone {
            state.loaded.remove(&name);
            for slot in Slot::ALL {
                self.policies.clear_arm(engine_slot(slot), &name);
            }
        }
    }
}
