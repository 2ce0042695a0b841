//! Stores experiments, their modules and their units: in Redis for the replicas of a cluster, else in the process and in files.

mod codec;
mod error;
mod experiment_store;
mod local;
mod local_modules;
mod module_digests;
mod redis;
mod units;

pub use self::error::ExperimentStoreError;
#[cfg(test)]
pub(super) use self::units::UserGuard;
pub(super) use self::{
    experiment_store::ExperimentStore,
    units::{UNITS_MAX, UnitRow, UserSums},
};
