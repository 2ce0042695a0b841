//! Reads and writes experiments in Redis or, for a replica that is alone, in this process. Such a replica also writes experiments
//! and modules to `policy.state_dir` if it is set.
//!
//! The keys in Redis begin with the prefix of the cluster's channels:
//!
//! | key | type | holds |
//! |---|---|---|
//! | `#experiments` | hash | `state`: all experiments as JSON; `version`: by which it is compared and set |
//! | `#experiments:module:<digest>` | hash | `wasm`, `config` (JSON) of an arm |
//! | `#experiments:unneeded` | sorted set | digests of modules that no experiment needs, by time; at most 16, the oldest are removed |
//! | `#experiments:evaluator` | string | the replica whose turn it is to evaluate the units |
//! | `#experiment:<id>:units` | sorted set | exposed units, by the time of the last exposure by the clock of Redis |
//! | `#experiment:<id>:over` | hash | by unit: its [`UnitRow`], once its horizon is over |
//! | `#experiment:<id>:user:<unit>` | hash | in a slot about calls: the sums of a user; `guard:…`: only for guardrails |
//! | `#experiment:<id>:cells` | hash | how often each pair of decisions of slot and shadow occurred |
//!
//! Until its horizon is over, the results of a device are in the device's own record. Units are kept for 30 days after the last
//! change.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use pointwork_core::experiments::Experiments as ExperimentList;
use socketioxide_redis_streams::transport::redis::Redis;

use super::{
    error::ExperimentStoreResult,
    local::LocalStore,
    redis::RedisStore,
    units::{ExposedUnits, UnitRow, UserSums},
};
use crate::policies::{
    PolicyModule,
    assignments::{DisagreementCell, UserDelta},
};

/// The store of a replica.
pub(crate) enum ExperimentStore {
    /// The replica is alone.
    Local(LocalStore),
    /// The replicas of a cluster share it.
    Redis(RedisStore),
}

/// Calls the same method of whichever store it is.
macro_rules! either {
    ($store:expr, $method:ident($($argument:expr),*)) => {
        match $store {
            Self::Local(local) => local.$method($($argument),*),
            Self::Redis(redis) => redis.$method($($argument),*).await,
        }
    };
}

impl ExperimentStore {
    pub(crate) fn local(dir: Option<PathBuf>) -> Self {
        Self::Local(LocalStore::new(dir))
    }

    pub(crate) fn redis(redis: Arc<Redis>, prefix: &str) -> Self {
        Self::Redis(RedisStore::new(redis, prefix))
    }

    /// Reads all experiments.
    pub(crate) async fn read(&self) -> ExperimentStoreResult<ExperimentList> {
        either!(self, read())
    }

    /// Writes all experiments if the stored version is still `expected`; false when another change was faster.
    pub(crate) async fn swap(&self, expected: u64, next: &ExperimentList) -> ExperimentStoreResult<bool> {
        either!(self, swap(expected, next))
    }

    /// Stores a module. Unless an experiment needs it, it is removed after a while, or when later modules need the room.
    pub(crate) async fn put_module(&self, digest: &str, module: PolicyModule) -> ExperimentStoreResult<()> {
        either!(self, put_module(digest, module))
    }

    /// Reads a module; `None` when it is not stored.
    pub(crate) async fn module(&self, digest: &str) -> ExperimentStoreResult<Option<PolicyModule>> {
        either!(self, module(digest))
    }

    /// Takes or renews the turn to evaluate the units. Returns whether it is this replica's turn.
    pub(crate) async fn lease(&self, uid: &str) -> ExperimentStoreResult<bool> {
        match self {
            Self::Local(_) => Ok(true),
            Self::Redis(redis) => redis.lease(uid).await,
        }
    }

    /// Notes devices as exposed now. Returns how many found no room. A second call only changes the time.
    pub(crate) async fn expose(&self, id: &str, units: &BTreeSet<String>) -> ExperimentStoreResult<u64> {
        either!(self, expose(id, units))
    }

    /// Reads the units that were noted as exposed since a moment.
    pub(crate) async fn exposed(&self, id: &str, since_ms: u64) -> ExperimentStoreResult<ExposedUnits> {
        either!(self, exposed(id, since_ms))
    }

    /// Notes the results of units whose horizon is over. The first results of a unit stay.
    pub(crate) async fn finish(&self, id: &str, rows: &[(String, UnitRow)]) -> ExperimentStoreResult<()> {
        either!(self, finish(id, rows))
    }

    /// Reads the results of the units whose horizon is over.
    pub(crate) async fn finished(&self, id: &str) -> ExperimentStoreResult<BTreeMap<String, UnitRow>> {
        either!(self, finished(id))
    }

    /// Adds to the sums of users. Returns how many users found no room.
    pub(crate) async fn add_users(&self, id: &str, users: &BTreeMap<String, UserDelta>) -> ExperimentStoreResult<u64> {
        either!(self, add_users(id, users))
    }

    /// Reads the sums of users, in the order given; `None` for an unknown user.
    pub(crate) async fn users(&self, id: &str, units: &[String]) -> ExperimentStoreResult<Vec<Option<UserSums>>> {
        either!(self, users(id, units))
    }

    /// Adds to the matrix of disagreements.
    pub(crate) async fn add_cells(&self, id: &str, cells: &[(DisagreementCell, u64)]) -> ExperimentStoreResult<()> {
        either!(self, add_cells(id, cells))
    }

    /// Reads the matrix of disagreements.
    pub(crate) async fn cells(&self, id: &str) -> ExperimentStoreResult<BTreeMap<DisagreementCell, u64>> {
        either!(self, cells(id))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;
