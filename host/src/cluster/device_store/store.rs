//! Where the records of devices are kept: in Redis for all replicas of a cluster, in this process for one that is alone.
//!
//! In Redis all keys begin with the prefix of the cluster's channels and `device:`.
//!
//! | key | type | holds |
//! |---|---|---|
//! | `record:<device>` | hash | `record`: the JSON of [`codec`]; `epoch`, `code`, `replica` and `owner`: what scripts need of it |
//! | `ids` | sorted set | all devices, in the order of their ids |
//! | `owned:<owner>` | sorted set | those of an owner that are kept for good, in the order of their ids |
//! | `code:<code>` | string | the device that has the pairing code |
//! | `of:<replica>` | set | the devices whose records name the replica |
//! | `replicas` | set | the replicas for which there is such a set |
//! | `expiring` | sorted set | `<replica>\n<device>` of records that expire, by when the indexes are rid of them |
//!
//! A script writes a record with all that leads to it, so they agree for everybody. Only a record that expires goes by itself;
//! what still leads to it is passed over, and swept by later writes.
//!
//! The record of a device that is not paired is kept for a day after its last change, and so is its code; that of a paired or
//! blocked one for good. A code that several devices bring belongs to the one that had it first, while that has it.

use std::sync::Arc;

use pointwork_core::devices::{DeviceRecord, StoreAway, SwapResult};
use socketioxide_redis_streams::transport::redis::Redis;

use crate::{cluster::replicas::Replicas, config::RedisConfig};

use super::{alone::Alone, redis::Shared, unread::Unread};

/// How many records a page has at most.
pub(crate) const PAGE_MAX: usize = 1_000;

/// The records of all devices.
pub enum DeviceStore {
    /// Those of a replica that is alone. It is never away.
    Alone(Alone),
    /// Those of a cluster.
    Redis(Shared),
}

impl DeviceStore {
    /// The store that the replicas share, or one of this process's own when it is alone.
    #[must_use]
    pub fn of(replicas: &Replicas, redis: &RedisConfig) -> Arc<Self> {
        Arc::new(match replicas.redis() {
            Some(shared) => Self::redis(shared.clone(), &format!("{}#", redis.channel_prefix)),
            None => Self::alone(),
        })
    }

    /// A store of this process's own. It forgets all when the process ends.
    pub(crate) fn alone() -> Self {
        Self::Alone(Alone::default())
    }

    /// The store of the cluster whose channels begin with `prefix`.
    pub(crate) fn redis(redis: Arc<Redis>, prefix: &str) -> Self {
        Self::Redis(Shared::new(redis, prefix))
    }

    /// The record of a device; the default record if there is none.
    ///
    /// # Errors
    /// Also when there is one that cannot be read: it is not taken for none.
    pub(crate) async fn read(&self, device: &str) -> Result<DeviceRecord, Unread> {
        match self {
            Self::Alone(alone) => Ok(alone.read(device)),
            Self::Redis(shared) => shared.read(device).await,
        }
    }

    /// The records of several devices, in their order; `None` of one that has none, or one that cannot be read.
    ///
    /// # Errors
    /// When the store is away.
    pub(crate) async fn read_each(&self, devices: &[String]) -> Result<Vec<Option<DeviceRecord>>, StoreAway> {
        match self {
            Self::Alone(alone) => Ok(devices.iter().map(|device| Some(alone.read(device))).collect()),
            Self::Redis(shared) => shared.read_each(devices).await,
        }
    }

    /// Writes a record if the device's has the epoch `expected` (0: if there is none), in one step. `record` has a greater one.
    pub(crate) async fn swap(&self, device: &str, expected: u64, record: &DeviceRecord) -> SwapResult {
        match self {
            Self::Alone(alone) if alone.swap(device, expected, record) => SwapResult::Won,
            Self::Alone(_) => SwapResult::Lost,
            Self::Redis(shared) => shared.swap(device, expected, record).await,
        }
    }

    /// The next `count` devices behind `after`, at most [`PAGE_MAX`], in the order of the bytes of their ids: fewer only at the end.
    /// Those whose records cannot be read are left out, and counted.
    ///
    /// # Errors
    /// When the store is away.
    pub(crate) async fn page(
        &self,
        after: Option<&str>,
        count: usize,
    ) -> Result<Vec<(String, DeviceRecord)>, StoreAway> {
        let count = count.min(PAGE_MAX);
        match self {
            Self::Alone(alone) => Ok(alone.page(after, count)),
            Self::Redis(shared) => shared.page(None, after, count).await,
        }
    }

    /// The same of the devices that belong to an owner and are kept for good: paired or blocked ones.
    ///
    /// # Errors
    /// When the store is away.
    pub(crate) async fn owned(
        &self,
        owner: &str,
        after: Option<&str>,
        count: usize,
    ) -> Result<Vec<(String, DeviceRecord)>, StoreAway> {
        let count = count.min(PAGE_MAX);
        match self {
            Self::Alone(alone) => Ok(alone.owned(owner, after, count)),
            Self::Redis(shared) => shared.page(Some(owner), after, count).await,
        }
    }

    /// The device that is not paired and has this pairing code.
    ///
    /// # Errors
    /// When the store is away.
    pub(crate) async fn by_pairing_code(&self, code: &str) -> Result<Option<String>, StoreAway> {
        match self {
            Self::Alone(alone) => Ok(alone.by_pairing_code(code)),
            Self::Redis(shared) => shared.by_pairing_code(code).await,
        }
    }

    /// The devices whose records name a replica as the holder's or, while their status is not offline, as that of the holder
    /// that ended; in the order of their ids. One whose record changes meanwhile may be among them or not.
    ///
    /// # Errors
    /// When the store is away.
    pub(crate) async fn of_replica(&self, replica: &str) -> Result<Vec<String>, StoreAway> {
        match self {
            Self::Alone(alone) => Ok(alone.of_replica(replica)),
            Self::Redis(shared) => shared.of_replica(replica).await,
        }
    }

    /// All replicas that are named so, in order. One that only records named which have expired may still be among them.
    ///
    /// # Errors
    /// When the store is away.
    pub(crate) async fn replicas(&self) -> Result<Vec<String>, StoreAway> {
        match self {
            Self::Alone(alone) => Ok(alone.replicas()),
            Self::Redis(shared) => shared.replicas().await,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
pub(super) mod tests;
