//! What operators change.

use bytes::Bytes;
use pointwork_core::device::StoreAway;
use pointwork_core::experiment::{
    Arm, ChangeError, CreateError, Experiment, Experiments as Known, Guardrails, HORIZON_MS, Module, Slot, Status,
};
use serde::Deserialize;

use super::{Experiments, StoreError, store::Stored};
use crate::{
    driver::clock::unix_ms,
    policies::slots::{PreparedPolicy, engine_slot},
};

/// How often a change is made anew because another was faster.
const TRIES_MAX: u32 = 8;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// It is not created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// It is not changed.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// A module cannot be an arm.
    #[error("{0}")]
    Module(#[from] pointwork_policy::LoadError),
    /// A text names no module.
    #[error(transparent)]
    NoModule(#[from] pointwork_core::experiment::NoModule),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Others were faster each time.
    #[error("experiments keep changing: try again")]
    Contended,
    /// The records of devices cannot be read.
    #[error("the store of sessions is away")]
    Devices(#[from] StoreAway),
    /// The rollouts did not take what was promoted.
    #[error(transparent)]
    Rollout(#[from] crate::policies::rollout::RolloutError),
    /// A rollout has modules alone.
    #[error("the native rule cannot be pushed to a cluster: push a policy with the same rule")]
    NativeInCluster,
    /// The host is about to end.
    #[error("the host shuts down")]
    Closing,
}

/// An experiment that is to be created.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct New {
    /// Its name.
    pub name: String,
    /// The slot.
    pub slot: Slot,
    /// Without one it gets its own.
    #[serde(default)]
    pub salt: Option<String>,
    /// The control first.
    pub arms: Vec<NewArm>,
    /// Of 10,000, by arm.
    pub weights: Vec<u32>,
    /// The treatments are only asked too.
    #[serde(default)]
    pub shadow_only: bool,
    /// In milliseconds; ten minutes without it.
    #[serde(default)]
    pub horizon_ms: Option<u32>,
    /// The limits.
    #[serde(default)]
    pub guardrails: Guardrails,
}

/// An arm of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewArm {
    /// Its name.
    pub name: String,
    /// `current`, `native`, or the digest of a module that was stored.
    pub module: String,
}

impl Experiments {
    /// Checks a module as a load would, and stores it for an experiment that is to be created. Compiles it.
    ///
    /// # Errors
    /// When it is none for the slot, or the store is away.
    pub async fn put_module(&self, slot: Slot, wasm: Bytes, config: String) -> Result<PreparedPolicy, ExperimentError> {
        let (policies, module) = (self.policies.clone(), Stored { wasm, config });
        let prepare = move || {
            let prepared = policies.prepare(engine_slot(slot), &module.wasm, &module.config);
            prepared.map(|prepared| (prepared, module))
        };
        let (prepared, module) = tokio::task::spawn_blocking(prepare).await.map_err(|_| ExperimentError::Closing)??;
        self.store.put_module(&prepared.digest().to_string(), module).await?;
        Ok(prepared)
    }

    /// Creates an experiment, which runs at once.
    ///
    /// # Errors
    /// When it is not sound, or cannot be stored.
    pub async fn create(&self, new: New) -> Result<Experiment, ExperimentError> {
        let created_ms = unix_ms();
        let arm = |arm: NewArm| Ok::<_, ExperimentError>(Arm { name: arm.name, module: Module::try_from(arm.module)? });
        let experiment = Experiment {
            salt: new.salt.unwrap_or_else(|| format!("{created_ms}-{:08x}", fastrand::u32(..))),
            name: new.name,
            slot: new.slot,
            arms: new.arms.into_iter().map(arm).collect::<Result<_, _>>()?,
            weights: new.weights,
            status: Status::Running,
            shadow_only: new.shadow_only,
            horizon_ms: new.horizon_ms.unwrap_or(HORIZON_MS),
            window_ms: self.window_ms,
            silence_ms: self.silence_ms,
            guardrails: new.guardrails,
            created_ms,
            ended_ms: None,
            version: 0,
        };
        let name = experiment.name.clone();
        self.change(&name, |known| Ok(known.create(experiment.clone())?)).await
    }

    /// Changes the weights: of 10,000, by arm.
    ///
    /// # Errors
    /// See [`Known::set_weights`].
    pub async fn set_weights(&self, name: &str, weights: &[u32]) -> Result<Experiment, ExperimentError> {
        self.change(name, |known| Ok(known.set_weights(name, weights)?)).await
    }

    /// Pauses it.
    ///
    /// # Errors
    /// See [`Known::pause`].
    pub async fn pause(&self, name: &str) -> Result<Experiment, ExperimentError> {
        self.change(name, |known| Ok(known.pause(name)?)).await
    }

    /// Has a paused one run again.
    ///
    /// # Errors
    /// See [`Known::resume`].
    pub async fn resume(&self, name: &str) -> Result<Experiment, ExperimentError> {
        self.change(name, |known| Ok(known.resume(name)?)).await
    }

    /// Ends it.
    ///
    /// # Errors
    /// See [`Known::abort`].
    pub async fn abort(&self, name: &str, reason: &str) -> Result<Experiment, ExperimentError> {
        let now_ms = unix_ms();
        self.change(name, |known| Ok(known.abort(name, reason, now_ms)?)).await
    }

    /// Makes a change by compare-and-set, carries it out here, and tells the others; gives the experiment as it is then.
    pub(super) async fn change(
        &self,
        name: &str,
        change: impl Fn(&Known) -> Result<Known, ExperimentError>,
    ) -> Result<Experiment, ExperimentError> {
        for _ in 0..TRIES_MAX {
            let known = self.store.read().await?;
            let next = change(&known)?;
            if self.store.swap(known.version, &next).await? {
                self.replicas.experiments_changed();
                let changed = next.get(name).cloned();
                self.carry_out(next).await;
                let changed = changed.ok_or_else(|| ChangeError::Unknown(name.to_owned()))?;
                tracing::info!(experiment = name, status = changed.status.as_str(), weights = ?changed.weights, "an experiment was changed");
                return Ok(changed);
            }
        }
        Err(ExperimentError::Contended)
    }

    /// The experiment of that name, as the store has it.
    ///
    /// # Errors
    /// When there is none, or the store is away.
    pub async fn get(&self, name: &str) -> Result<Experiment, ExperimentError> {
        let known = self.store.read().await?;
        Ok(known.get(name).cloned().ok_or_else(|| ChangeError::Unknown(name.to_owned()))?)
    }
}
