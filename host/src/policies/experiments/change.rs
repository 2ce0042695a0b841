//! Creates and changes experiments for operators.

use bytes::Bytes;
use pointwork_core::experiments::{
    Arm, ArmModule, ChangeError, Experiment, ExperimentStatus, Experiments as ExperimentList, Guardrails, HORIZON_MS,
    Slot,
};
use serde::Deserialize;

use super::{error::ExperimentError, state::Experiments};
use crate::{
    driver::clock::unix_ms,
    policies::{
        PolicyModule,
        slots::{PreparedPolicy, engine_slot},
    },
};

/// How often a change is tried because another one was faster.
const TRIES_MAX: u32 = 8;

/// A request to create an experiment.
#[derive(Debug, Clone, Deserialize)]
// Exported as `NewExperiment`. Clients of the admin API see the name in an error, so it stays.
#[serde(deny_unknown_fields)]
pub struct New {
    /// The experiment's name.
    pub name: String,
    /// The slot that the arms decide in.
    pub slot: Slot,
    /// Spreads units over arms; without it, the experiment gets a random one.
    #[serde(default)]
    pub salt: Option<String>,
    /// The arms, the control first.
    pub arms: Vec<NewArm>,
    /// The weight of each arm, in ten-thousandths.
    pub weights: Vec<u32>,
    /// Whether the treatments only answer as shadows.
    #[serde(default)]
    pub shadow_only: bool,
    /// How long each unit is observed, in milliseconds; ten minutes by default.
    #[serde(default)]
    pub horizon_ms: Option<u32>,
    /// The limits that end the experiment.
    #[serde(default)]
    pub guardrails: Guardrails,
}

/// An arm of a [`New`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewArm {
    /// The arm's name.
    pub name: String,
    /// `current`, `native`, or the digest of a module that was stored.
    pub module: String,
}

impl Experiments {
    /// Checks a module as a load does, which compiles it, and stores it for a new experiment.
    ///
    /// # Errors
    /// When it is not a module for the slot, or the store fails.
    pub async fn put_module(&self, slot: Slot, wasm: Bytes, config: String) -> Result<PreparedPolicy, ExperimentError> {
        let (policies, module) = (self.policies.clone(), PolicyModule { wasm, config });
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
    /// When it is not valid, or cannot be stored.
    pub async fn create(&self, new: New) -> Result<Experiment, ExperimentError> {
        let created_ms = unix_ms();
        let arm =
            |arm: NewArm| Ok::<_, ExperimentError>(Arm { name: arm.name, module: ArmModule::try_from(arm.module)? });
        let experiment = Experiment {
            salt: new.salt.unwrap_or_else(|| format!("{created_ms}-{:08x}", fastrand::u32(..))),
            name: new.name,
            slot: new.slot,
            arms: new.arms.into_iter().map(arm).collect::<Result<_, _>>()?,
            weights: new.weights,
            status: ExperimentStatus::Running,
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

    /// Changes the weight of each arm, in ten-thousandths.
    ///
    /// # Errors
    /// See [`ExperimentList::set_weights`].
    pub async fn set_weights(&self, name: &str, weights: &[u32]) -> Result<Experiment, ExperimentError> {
        self.change(name, |known| Ok(known.set_weights(name, weights)?)).await
    }

    /// Pauses an experiment.
    ///
    /// # Errors
    /// See [`ExperimentList::pause`].
    pub async fn pause(&self, name: &str) -> Result<Experiment, ExperimentError> {
        self.change(name, |known| Ok(known.pause(name)?)).await
    }

    /// Resumes a paused experiment.
    ///
    /// # Errors
    /// See [`ExperimentList::resume`].
    pub async fn resume(&self, name: &str) -> Result<Experiment, ExperimentError> {
        self.change(name, |known| Ok(known.resume(name)?)).await
    }

    /// Ends an experiment.
    ///
    /// # Errors
    /// See [`ExperimentList::abort`].
    pub async fn abort(&self, name: &str, reason: &str) -> Result<Experiment, ExperimentError> {
        let now_ms = unix_ms();
        self.change(name, |known| Ok(known.abort(name, reason, now_ms)?)).await
    }

    /// Makes a change by compare-and-set, applies it on this replica, and announces it. Returns the changed experiment.
    pub(super) async fn change(
        &self,
        name: &str,
        change: impl Fn(&ExperimentList) -> Result<ExperimentList, ExperimentError>,
    ) -> Result<Experiment, ExperimentError> {
        for _ in 0..TRIES_MAX {
            let known = self.store.read().await?;
            let next = change(&known)?;
            if self.store.swap(known.version, &next).await? {
                self.replicas.experiments_changed();
                let changed = find(&next, name).cloned();
                self.apply_change(next).await;
                let changed = changed?;
                tracing::info!(experiment = name, status = changed.status.as_str(), weights = ?changed.weights, "an experiment was changed");
                return Ok(changed);
            }
        }
        Err(ExperimentError::Contended)
    }

    /// Reads an experiment from the store.
    ///
    /// # Errors
    /// When there is no experiment with this name, or the store fails.
    pub async fn get(&self, name: &str) -> Result<Experiment, ExperimentError> {
        find(&self.store.read().await?, name).cloned()
    }
}

/// The experiment with a name.
pub(super) fn find<'a>(known: &'a ExperimentList, name: &str) -> Result<&'a Experiment, ExperimentError> {
    Ok(known.get(name).ok_or_else(|| ChangeError::Unknown(name.to_owned()))?)
}
