//! Makes a promoted treatment serve its slot.
//!
//! In a cluster, the replica that promotes a treatment pushes it. With a policy directory, each replica carries out the last
//! promotion of each slot by itself, also when it starts later, and retries until that succeeds. Newer changes have precedence over
//! a promotion: files of the slot that were written since, and an undo that `policy.state_dir` remembers.

use std::{sync::Arc, time::Duration};

use pointwork_core::experiments::{ArmModule, Experiment, ExperimentStatus, Experiments as ExperimentList, Slot};
use tokio::time::{Instant, sleep};

use super::{
    change::find,
    error::ExperimentError,
    load_arms::RETRY_AFTER,
    state::{Experiments, Promotion},
    store::ExperimentStoreError,
};
use crate::{
    config::PolicySource,
    driver::clock::unix_ms,
    policies::{rollout::Rollouts, slots::engine_slot},
};

/// How often promotions are checked.
const INTERVAL: Duration = Duration::from_secs(1);

/// Carries out promotions for as long as the current runtime runs.
pub(super) async fn run(experiments: Arc<Experiments>) {
    loop {
        experiments.carry_out_promotions().await;
        sleep(INTERVAL).await;
    }
}

impl Experiments {
    /// Makes a treatment serve its slot on every replica. In a cluster, the experiment ends first, so that no guardrail ends it
    /// meanwhile, and then the treatment is pushed. If the push is refused, the experiment is as it was before. If the process ended
    /// between the two steps, a second call pushes. Goes on when the caller no longer waits.
    ///
    /// # Errors
    /// See [`ExperimentList::promote`] and [`Rollouts::push`].
    pub async fn promote(self: &Arc<Self>, name: &str, arm: Option<&str>) -> Result<Experiment, ExperimentError> {
        let (this, name, arm) = (self.clone(), name.to_owned(), arm.map(str::to_owned));
        let promoted = async move {
            let promoted = match this.rollouts() {
                Some(rollouts) => this.promote_by(rollouts, &name, arm.as_deref()).await?,
                None => this.end_promoted(&name, arm.as_deref()).await?,
            };
            this.carry_out_promotions().await;
            Ok(promoted)
        };
        tokio::spawn(promoted).await.map_err(|_| ExperimentError::Closing)?
    }

    /// The rollouts, if the cluster says what serves and not the policy directory.
    pub(super) fn rollouts(&self) -> Option<&Rollouts> {
        self.rollouts.get().filter(|rollouts| rollouts.source() == PolicySource::Cluster)
    }

    async fn end_promoted(&self, name: &str, arm: Option<&str>) -> Result<Experiment, ExperimentError> {
        let now_ms = unix_ms();
        self.change(name, |known| Ok(known.promote(name, arm, now_ms)?)).await
    }

    async fn promote_by(
        &self,
        rollouts: &Rollouts,
        name: &str,
        arm: Option<&str>,
    ) -> Result<Experiment, ExperimentError> {
        let known = self.store.read().await?;
        let found = find(&known, name)?;
        let is_again = is_promotion(&known, found, arm);
        let next = if is_again { known.clone() } else { known.promote(name, arm, unix_ms())? };
        let pushed = match next.get(name).and_then(promoted_module) {
            Some(ArmModule::Digest(digest)) => {
                Some(self.store.module(digest).await?.ok_or(ExperimentStoreError::NoModule)?)
            }
            Some(ArmModule::Native) => return Err(ExperimentError::NativeInCluster),
            Some(ArmModule::Current) | None => None,
        };
        let promoted = if is_again { found.clone() } else { self.end_promoted(name, arm).await? };
        let Some(module) = pushed else { return Ok(promoted) };
        match rollouts.push(engine_slot(promoted.slot), module, false).await {
            Ok(_) => Ok(promoted),
            Err(error) => {
                if !is_again {
                    let taken_back =
                        self.change(name, |known| Ok(known.unpromote(name, promoted.version, &found.status)?));
                    if let Err(error) = taken_back.await {
                        tracing::warn!(experiment = name, %error, "promoted, but not pushed: promote it again");
                    }
                }
                Err(error.into())
            }
        }
    }

    /// Carries out the promotions that are due on this replica.
    async fn carry_out_promotions(&self) {
        if self.rollouts().is_some() {
            return;
        }
        let _one_at_a_time = self.promoting.lock().await;
        let Some(known) = self.state.lock().known.clone() else { return };
        let first_version = {
            let mut state = self.state.lock();
            state.promoted.retain(|id, _| known.list.iter().any(|experiment| experiment.id() == *id));
            *state.first_version.get_or_insert(known.version)
        };
        for experiment in Slot::ALL.into_iter().filter_map(|slot| known.promotion(slot)) {
            let is_due = |promotion: &Promotion| promotion.again.is_some_and(|again| again <= Instant::now());
            if self.state.lock().promoted.get(&experiment.id()).is_none_or(is_due) {
                self.carry_out_promotion(experiment, experiment.version <= first_version).await;
            }
        }
    }

    /// `is_old`: it was promoted before this replica started, so an operator may have undone it since.
    async fn carry_out_promotion(&self, experiment: &Experiment, is_old: bool) {
        let slot = engine_slot(experiment.slot);
        let ended_ms = experiment.ended_ms.unwrap_or_default();
        let outcome = match promoted_module(experiment) {
            None | Some(ArmModule::Current) => Ok("it serves already".to_owned()),
            Some(_) if self.modules.written_ms(slot).is_some_and(|written_ms| written_ms > ended_ms) => {
                Ok("not switched: its file in the policy directory is newer".to_owned())
            }
            Some(ArmModule::Native) => {
                self.policies.unload(slot);
                Ok("the native rule serves".to_owned())
            }
            Some(ArmModule::Digest(digest)) if is_old && self.policies.was_undone(slot, digest) => {
                Ok("not switched: it was undone here".to_owned())
            }
            Some(ArmModule::Digest(digest)) => self.switch_to(experiment.slot, digest).await,
        };
        let is_done = outcome.is_ok();
        let outcome = outcome.unwrap_or_else(|why| format!("not switched: {why}"));
        let mut state = self.state.lock();
        let before = state.promoted.get(&experiment.id());
        if before.is_none_or(|before| before.outcome != outcome) {
            tracing::info!(experiment = experiment.name, outcome, is_done, "a treatment was promoted");
        }
        let again = (!is_done).then(|| Instant::now() + RETRY_AFTER);
        state.promoted.insert(experiment.id(), Promotion { outcome, again });
    }

    /// Switches to a module. Returns the result in words; an error is tried again.
    async fn switch_to(&self, slot: Slot, digest: &str) -> Result<String, String> {
        let prepared = self.prepared(slot, digest).await?.ok_or("the store is away")?;
        let policies = self.policies.clone();
        let switched = tokio::task::spawn_blocking(move || policies.switch(prepared)).await;
        let report = switched.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        Ok(format!("it serves as generation {}", report.generation))
    }
}

/// Whether this experiment is the last promotion of its slot, with this arm if one is given.
fn is_promotion(known: &ExperimentList, experiment: &Experiment, arm: Option<&str>) -> bool {
    let ExperimentStatus::Promoted { arm: promoted } = &experiment.status else { return false };
    let is_last = known.promotion(experiment.slot).is_some_and(|last| last.name == experiment.name);
    is_last && arm.is_none_or(|arm| arm == promoted)
}

/// The module of the promoted arm.
fn promoted_module(experiment: &Experiment) -> Option<&ArmModule> {
    experiment.promoted_arm().map(|arm| &arm.module)
}
