//! Holds what a replica knows of the experiments.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use pointwork_core::experiments::Experiments as ExperimentList;
use tokio::{sync::Notify, time::Instant};

use super::store::ExperimentStore;
use crate::{
    cluster::{Replicas, device_store::DeviceStore},
    config::Config,
    policies::{assignments::ExperimentOutbox, directory::ModulePaths, rollout::Rollouts, slots::Policies},
};

/// The experiments of a cluster, as this replica carries them out.
pub struct Experiments {
    pub(super) store: ExperimentStore,
    pub(super) policies: Arc<Policies>,
    pub(super) replicas: Arc<Replicas>,
    pub(super) devices: Arc<DeviceStore>,
    pub(super) rollouts: OnceLock<Rollouts>,
    pub(super) outbox: Arc<ExperimentOutbox>,
    /// The operator's settle window.
    pub(super) window_ms: u32,
    /// The engine's ping interval.
    pub(super) silence_ms: u32,
    pub(super) modules: ModulePaths,
    pub(super) state: Mutex<ExperimentsState>,
    /// Locked while promotions are carried out.
    pub(super) promoting: tokio::sync::Mutex<()>,
    /// Locked while a state of the store is applied.
    pub(super) applying: tokio::sync::Mutex<()>,
    /// Locked while arms are loaded, which includes compiling their modules.
    pub(super) loading: tokio::sync::Mutex<()>,
    /// Notified when there may be arms to load.
    pub(super) to_load: Notify,
}

#[derive(Default)]
pub(super) struct ExperimentsState {
    /// The experiments as the store had them last; `None` before it was read.
    pub(super) known: Option<ExperimentList>,
    /// By the engine's name of an arm: its digest.
    pub(super) loaded: BTreeMap<Arc<str>, Box<str>>,
    /// By the engine's name of an arm: why it could not be loaded, and when.
    pub(super) failed: BTreeMap<Arc<str>, (String, Instant)>,
    /// Why the store cannot be read.
    pub(super) error: Option<String>,
    /// Units that found no room in the store.
    pub(super) refused: u64,
    /// By experiment: the promotions that this replica has tried.
    pub(super) promoted: BTreeMap<String, Promotion>,
    /// The version of the experiments when promotions were first looked at.
    pub(super) first_version: Option<u64>,
}

/// A promotion that this replica has tried.
pub(super) struct Promotion {
    /// The result, in words for operators.
    pub(super) outcome: String,
    /// When it is tried again; `None` when it is done.
    pub(super) again: Option<Instant>,
}

impl Experiments {
    /// Prepares the experiments of a replica. Nothing runs before [`Experiments::start`].
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn new(
        config: &Config,
        policies: Arc<Policies>,
        replicas: Arc<Replicas>,
        devices: Arc<DeviceStore>,
    ) -> std::io::Result<Arc<Self>> {
        let store = match replicas.redis() {
            Some(redis) => ExperimentStore::redis(redis.clone(), &config.redis.channel_prefix),
            None => ExperimentStore::local(config.policy.state_dir.clone()),
        };
        Ok(Arc::new(Self {
            store,
            outbox: ExperimentOutbox::start()?,
            policies,
            replicas,
            devices,
            rollouts: OnceLock::new(),
            window_ms: config.device.settle_ms.get(),
            silence_ms: config.listen.ping_interval_ms.get(),
            modules: ModulePaths::of(&config.policy),
            state: Mutex::default(),
            promoting: tokio::sync::Mutex::default(),
            applying: tokio::sync::Mutex::default(),
            loading: tokio::sync::Mutex::default(),
            to_load: Notify::new(),
        }))
    }
}
