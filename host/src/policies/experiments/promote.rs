//! Has a promoted treatment serve its slot.
//!
//! Where rollouts say what serves, whoever promotes a treatment has it pushed. Where the policy directory does, each replica carries out
//! the last promotion of each slot by itself, however late it hears of it, at its start too, and tries again until that is done. What is
//! newer than a promotion counts more: files of the slot that were written since, and an undo that `policy.state_dir` remembers.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::UNIX_EPOCH,
};

use pointwork_core::experiment::{ChangeError, Experiment, Experiments as Known, Module, Slot, Status};
use pointwork_policy::SlotName;
use tokio::time::{Instant, sleep};

use super::{ExperimentError, Experiments, LOAD_AGAIN, LOOK, StoreError};
use crate::{
    config::{PolicyConfig, PolicySource},
    driver::clock::unix_ms,
    policies::{
        rollout::{self, Rollouts},
        slots::engine_slot,
    },
};

/// What became of a promotion on this replica.
pub(super) struct Promotion {
    /// In words, for operators.
    pub(super) outcome: String,
    /// When it is tried again; `None`: it is done.
    again: Option<Instant>,
}

/// Where the policy directory has the module of each slot, in the order of [`SlotName::ALL`].
pub(super) struct SlotFiles(Vec<PathBuf>);

impl SlotFiles {
    pub(super) fn of(settings: &PolicyConfig) -> Self {
        let slots = [&settings.target, &settings.grace, &settings.presence, &settings.settle];
        let paths = |dir: &PathBuf| slots.iter().map(|slot| slot.path(dir)).collect();
        Self(settings.dir.as_ref().map(paths).unwrap_or_default())
    }

    /// When the module or its configuration was written last, in milliseconds since the Unix epoch; `None` if neither is there.
    fn written_ms(&self, slot: SlotName) -> Option<u64> {
        let module = self.0.get(SlotName::ALL.iter().position(|known| *known == slot)?)?;
        let written = |path: &Path| {
            let since = fs::metadata(path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            u64::try_from(since.as_millis()).ok()
        };
        written(module).max(written(&module.with_extension("json")))
    }
}

/// Carries promotions out for as long as the current runtime.
pub(super) async fn run(experiments: Arc<Experiments>) {
    loop {
        experiments.carry_out_promotions().await;
        sleep(LOOK).await;
    }
}

impl Experiments {
    /// Has a treatment serve the slot, on every replica. Where rollouts say what serves, the experiment is over first, so that no
    /// guardrail ends it meanwhile, and the treatment is pushed then; if that is not taken, the experiment is as it was. Asked again
    /// after an end of the process in between, it pushes. Goes on to its end when nobody waits for it any more.
    ///
    /// # Errors
    /// See [`Known::promote`] and [`Rollouts::push`].
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

    /// The rollouts of the cluster, if they say what serves and not the policy directory.
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
        let found = known.get(name).ok_or_else(|| ChangeError::Unknown(name.to_owned()))?;
        let is_again = is_promotion(&known, found, arm);
        let next = if is_again { known.clone() } else { known.promote(name, arm, unix_ms())? };
        let pushed = match next.get(name).and_then(promoted_module) {
            Some(Module::Digest(digest)) => {
                let stored = self.store.module(digest).await?.ok_or(StoreError::NoModule)?;
                Some(rollout::Module { wasm: stored.wasm, config: stored.config })
            }
            Some(Module::Native) => return Err(ExperimentError::NativeInCluster),
            Some(Module::Current) | None => None,
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

    /// Carries out what is due here.
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

    /// `is_old`: it was promoted before this replica began, so what was undone may have been undone since.
    async fn carry_out_promotion(&self, experiment: &Experiment, is_old: bool) {
        let slot = engine_slot(experiment.slot);
        let ended_ms = experiment.ended_ms.unwrap_or_default();
        let outcome = match promoted_module(experiment) {
            None | Some(Module::Current) => Ok("it serves already".to_owned()),
            Some(_) if self.files.written_ms(slot).is_some_and(|written_ms| written_ms > ended_ms) => {
                Ok("not switched: its file in the policy directory is newer".to_owned())
            }
            Some(Module::Native) => {
                self.policies.unload(slot);
                Ok("the native rule serves".to_owned())
            }
            Some(Module::Digest(digest)) if is_old && self.policies.was_undone(slot, digest) => {
                Ok("not switched: it was undone here".to_owned())
            }
            Some(Module::Digest(digest)) => self.switch_to(experiment.slot, digest).await,
        };
        let is_done = outcome.is_ok();
        let outcome = outcome.unwrap_or_else(|why| format!("not switched: {why}"));
        let mut state = self.state.lock();
        let before = state.promoted.get(&experiment.id());
        if before.is_none_or(|before| before.outcome != outcome) {
            tracing::info!(experiment = experiment.name, outcome, is_done, "a treatment was promoted");
        }
        let again = (!is_done).then(|| Instant::now() + LOAD_AGAIN);
        state.promoted.insert(experiment.id(), Promotion { outcome, again });
    }

    /// What became of it; an error may be none the next time.
    async fn switch_to(&self, slot: Slot, digest: &str) -> Result<String, String> {
        let prepared = self.prepared(slot, digest).await?.ok_or("the store is away")?;
        let policies = self.policies.clone();
        let switched = tokio::task::spawn_blocking(move || policies.switch(prepared)).await;
        let report = switched.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        Ok(format!("it serves as generation {}", report.generation))
    }
}

/// Whether that experiment is what was promoted last in its slot, by that arm if one is named.
fn is_promotion(known: &Known, experiment: &Experiment, arm: Option<&str>) -> bool {
    let Status::Promoted { arm: promoted } = &experiment.status else { return false };
    let is_last = known.promotion(experiment.slot).is_some_and(|last| last.name == experiment.name);
    is_last && arm.is_none_or(|arm| arm == promoted)
}

/// What decides in the arm that was promoted.
fn promoted_module(experiment: &Experiment) -> Option<&Module> {
    experiment.promoted_arm().map(|arm| &arm.module)
}
