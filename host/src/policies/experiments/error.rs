//! Names the reasons why an operation on experiments fails.

use pointwork_core::{
    devices::StoreAway,
    experiments::{ChangeError, CreateError, NoModule},
};
use pointwork_policy::LoadError;

use super::store::ExperimentStoreError;
use crate::policies::rollout::RolloutError;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The experiment cannot be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The experiment cannot be changed.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// A module cannot be an arm.
    #[error("{0}")]
    Module(#[from] LoadError),
    /// The text does not name a module.
    #[error(transparent)]
    NoModule(#[from] NoModule),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ExperimentStoreError),
    /// Other changes were faster each time.
    #[error("experiments keep changing: try again")]
    Contended,
    /// The records of devices cannot be read.
    #[error("the store of sessions is away")]
    Devices(#[from] StoreAway),
    /// The promoted treatment cannot be pushed.
    #[error(transparent)]
    Rollout(#[from] RolloutError),
    /// Only modules can be pushed to a cluster.
    #[error("the native rule cannot be pushed to a cluster: push a policy with the same rule")]
    NativeInCluster,
    /// The host shuts down.
    #[error("the host shuts down")]
    Closing,
}
