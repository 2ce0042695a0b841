//! Where experiments are kept: in Redis for all replicas of a cluster; for one that is alone in this process, and, what outlives it
//! (the experiments and their modules), in `policy.state_dir` if that is set.
//!
//! In Redis, behind the prefix of the cluster's channels:
//!
//! | key | type | holds |
//! |---|---|---|
//! | `#experiments` | hash | `state`: all experiments as JSON; `version`: by which it is compared and set |
//! | `#experiments:module:<digest>` | hash | `wasm`, `config` (JSON) of an arm |
//! | `#experiments:unneeded` | sorted set | digests of modules that no experiment needs, by when; beyond 16 the oldest go |
//! | `#experiments:evaluator` | string | the replica whose turn it is to look at the units |
//! | `#experiment:<id>:units` | sorted set | exposed units, by when that was noted last, by the clock of Redis |
//! | `#experiment:<id>:over` | hash | by unit: its [`Row`], once its horizon is over |
//! | `#experiment:<id>:user:<unit>` | hash | of a slot about calls: what became of a user, in sums; `guard:…`: for guardrails alone |
//! | `#experiment:<id>:cells` | hash | how often shadows said what when the slot said what |
//!
//! What became of a device is in its own record, until its horizon is over. Units and what they are made of are kept for 30 days
//! after the last change.

mod local;
mod shared;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use bytes::Bytes;
use pointwork_core::experiment::{Arm, Experiments as Known, Module, Slot};
use serde::{Deserialize, Serialize};
use socketioxide_redis_streams::transport::{TransportError, redis::Redis};

use self::{local::Local, shared::Shared};
use crate::policies::assignments::{Cell, UserDelta};

/// Units of one experiment at most.
pub(crate) const UNITS_MAX: usize = 100_000;
/// Cells of the matrix of one experiment at most.
const CELLS_MAX: usize = 4_096;
/// Modules at most that are stored and that no experiment needs (yet, or any more): beyond these the oldest go.
const UNNEEDED_MAX: usize = 16;

/// Why the store did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Redis is away, did not answer in time, or refuses.
    #[error("Redis is away: {0}")]
    Away(#[from] TransportError),
    /// It holds something else than experiments, or those of a later version.
    #[error("what is stored of experiments cannot be read: {0}")]
    Unreadable(String),
    /// `policy.state_dir` cannot be written.
    #[error("policy.state_dir: {0}")]
    File(String),
    /// An arm's module is not stored.
    #[error("a module is not stored: it must be sent before the experiment is created")]
    NoModule,
}

/// A module with its configuration.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) wasm: Bytes,
    pub(crate) config: String,
}

/// What became of a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) arm: usize,
    pub(crate) weights: Vec<u32>,
    pub(crate) exposed_ms: u64,
    /// In the order of the slot's outcomes.
    pub(crate) values: Vec<Option<f64>>,
    pub(crate) decisions: u64,
    pub(crate) failures: u64,
    pub(crate) stranded_ms: u64,
    pub(crate) offline_ms: u64,
}

/// What became of a user so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UserSums {
    pub(crate) arm: usize,
    pub(crate) weights: Vec<u32>,
    pub(crate) exposed_ms: u64,
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) guard: Option<UserGuard>,
}

/// What a treatment decided for a user beyond its observation: after its horizon, or in another arm. For guardrails alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UserGuard {
    pub(crate) arm: usize,
    /// When the first of it was, in milliseconds since the Unix epoch.
    pub(crate) since_ms: u64,
    pub(crate) decisions: u64,
    pub(crate) failures: u64,
}

/// Units that were exposed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Exposed {
    /// The moment, by the clock by which they are noted; in milliseconds since the Unix epoch.
    pub(crate) now_ms: u64,
    pub(crate) units: BTreeSet<String>,
}

/// See the head.
pub(crate) enum Store {
    Local(Local),
    Redis(Shared),
}

impl Store {
    pub(crate) fn local(dir: Option<PathBuf>) -> Self {
        Self::Local(Local::new(dir))
    }

    pub(crate) fn redis(redis: Arc<Redis>, prefix: &str) -> Self {
        Self::Redis(Shared::new(redis, prefix))
    }

    /// All experiments.
    pub(crate) async fn read(&self) -> Result<Known, StoreError> {
        match self {
            Self::Local(local) => local.read(),
            Self::Redis(shared) => shared.read().await,
        }
    }

    /// Writes all experiments in the place of those with the version `expected`; false when another was faster.
    pub(crate) async fn swap(&self, expected: u64, next: &Known) -> Result<bool, StoreError> {
        match self {
            Self::Local(local) => local.swap(expected, next),
            Self::Redis(shared) => shared.swap(expected, next).await,
        }
    }

    /// Stores a module, for a while unless an experiment comes to need it: until so many others are stored that none needs.
    pub(crate) async fn put_module(&self, digest: &str, module: Stored) -> Result<(), StoreError> {
        match self {
            Self::Local(local) => local.put_module(digest, module),
            Self::Redis(shared) => shared.put_module(digest, module).await,
        }
    }

    /// A module; `None` when it is not there.
    pub(crate) async fn module(&self, digest: &str) -> Result<Option<Stored>, StoreError> {
        match self {
            Self::Local(local) => local.module(digest),
            Self::Redis(shared) => shared.module(digest).await,
        }
    }

    /// Whether it is this replica's turn to look at the units.
    pub(crate) async fn lease(&self, uid: &str) -> Result<bool, StoreError> {
        match self {
            Self::Local(_) => Ok(true),
            Self::Redis(shared) => shared.lease(uid).await,
        }
    }

    /// Notes devices as exposed, now; gives how many found no room. To do it again changes only when it was.
    pub(crate) async fn expose(&self, id: &str, units: &BTreeSet<String>) -> Result<u64, StoreError> {
        match self {
            Self::Local(local) => Ok(local.expose(id, units)),
            Self::Redis(shared) => shared.expose(id, units).await,
        }
    }

    /// Units that were noted as exposed since a moment.
    pub(crate) async fn exposed(&self, id: &str, since_ms: u64) -> Result<Exposed, StoreError> {
        match self {
            Self::Local(local) => Ok(local.exposed(id, since_ms)),
            Self::Redis(shared) => shared.exposed(id, since_ms).await,
        }
    }

    /// Notes what became of units whose horizon is over.
    pub(crate) async fn finish(&self, id: &str, rows: &[(String, Row)]) -> Result<(), StoreError> {
        match self {
            Self::Local(local) => {
                local.finish(id, rows);
                Ok(())
            }
            Self::Redis(shared) => shared.finish(id, rows).await,
        }
    }

    /// What became of the units whose horizon is over.
    pub(crate) async fn finished(&self, id: &str) -> Result<BTreeMap<String, Row>, StoreError> {
        match self {
            Self::Local(local) => Ok(local.finished(id)),
            Self::Redis(shared) => shared.finished(id).await,
        }
    }

    /// Adds up what became of users; gives how many found no room.
    pub(crate) async fn add_users(&self, id: &str, users: &BTreeMap<String, UserDelta>) -> Result<u64, StoreError> {
        match self {
            Self::Local(local) => Ok(local.add_users(id, users)),
            Self::Redis(shared) => shared.add_users(id, users).await,
        }
    }

    /// What became of users so far, in the order given; `None` of one that is not known.
    pub(crate) async fn users(&self, id: &str, units: &[String]) -> Result<Vec<Option<UserSums>>, StoreError> {
        match self {
            Self::Local(local) => Ok(local.users(id, units)),
            Self::Redis(shared) => shared.users(id, units).await,
        }
    }

    /// Adds to the matrix of disagreements.
    pub(crate) async fn add_cells(&self, id: &str, cells: &[(Cell, u64)]) -> Result<(), StoreError> {
        match self {
            Self::Local(local) => {
                local.add_cells(id, cells);
                Ok(())
            }
            Self::Redis(shared) => shared.add_cells(id, cells).await,
        }
    }

    /// The matrix of disagreements.
    pub(crate) async fn cells(&self, id: &str) -> Result<BTreeMap<Cell, u64>, StoreError> {
        match self {
            Self::Local(local) => Ok(local.cells(id)),
            Self::Redis(shared) => shared.cells(id).await,
        }
    }
}

/// Digests of modules of experiments.
struct Modules<'a> {
    /// Those of experiments that are not over: without them these cannot be carried out.
    needed: Vec<&'a str>,
    /// Those of treatments that were promoted last in their slots: a replica that starts later has them serve.
    kept: Vec<&'a str>,
    /// The others.
    others: Vec<&'a str>,
}

impl<'a> Modules<'a> {
    fn of(known: &'a Known) -> Self {
        let all = |is_over: bool| {
            let those = known.list.iter().filter(move |one| one.status.is_over() == is_over);
            those.flat_map(|one| &one.arms).filter_map(digest)
        };
        let needed: Vec<&str> = all(false).collect();
        let promoted = Slot::ALL.into_iter().filter_map(|slot| known.promotion(slot)?.promoted_arm());
        let kept: Vec<&str> = promoted.filter_map(digest).filter(|digest| !needed.contains(digest)).collect();
        let others = all(true).filter(|digest| !needed.contains(digest) && !kept.contains(digest)).collect();
        Self { needed, kept, others }
    }
}

fn digest(arm: &Arm) -> Option<&str> {
    match &arm.module {
        Module::Digest(digest) => Some(digest),
        Module::Current | Module::Native => None,
    }
}

/// Reads all experiments.
fn parse(text: &[u8]) -> Result<Known, StoreError> {
    let known: Known = serde_json::from_slice(text).map_err(|error| StoreError::Unreadable(error.to_string()))?;
    known.check().map_err(|error| StoreError::Unreadable(error.to_string()))?;
    Ok(known)
}

fn written(known: &Known) -> String {
    // Only a map whose keys are no texts cannot be written, and there is none in it.
    serde_json::to_string(known).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;
