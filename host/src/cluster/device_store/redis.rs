//! The records of a cluster. Each operation is one script; no operation is tried twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pointwork_core::devices::{DeviceRecord, StoreAway, SwapResult};
use socketioxide_redis_streams::transport::TransportError;
use socketioxide_redis_streams::transport::redis::{Redis, ScriptReply};
use tokio::sync::Semaphore;

use super::codec;
use super::place::Place;
use super::unread::Unread;

const READ: &str = include_str!("lua/read.lua");
const READ_EACH: &str = include_str!("lua/read_each.lua");
const SWAP: &str = include_str!("lua/swap.lua");
const PAGE: &str = include_str!("lua/page.lua");
const BY_CODE: &str = include_str!("lua/by_code.lua");
const OF_REPLICA: &str = include_str!("lua/of_replica.lua");
const REPLICAS: &str = include_str!("lua/replicas.lua");

/// How long after its record an index entry is swept at the earliest. A script's TIME may be ahead of the clock by which it sees
/// keys expire, and an entry must not go before its record.
const SWEEP_AFTER: Duration = Duration::from_secs(60);
/// How many index entries of expired records a swap sweeps.
const SWEEP_MAX: usize = 8;
/// How many devices are looked at in one step, at least and at most.
const STEP_MIN: usize = 64;
const STEP_MAX: usize = 1_000;
/// How many steps there are at most until the devices of a replica are all known.
const STEPS_MAX: usize = 10_000;
/// How many operations are under way at once: a whole fleet that leaves or comes must not hold up what else goes over the
/// connection, which is the cluster's heartbeats and requests.
const OPERATIONS_MAX: usize = 128;

/// The records in Redis.
pub struct Shared {
    redis: Arc<Redis>,
    /// How all keys begin.
    base: String,
    /// It was told that Redis refuses.
    is_refusal_told: AtomicBool,
    /// Turns of operations.
    turns: Semaphore,
}

impl Shared {
    pub(super) fn new(redis: Arc<Redis>, prefix: &str) -> Self {
        Self {
            redis,
            base: format!("{prefix}device:"),
            is_refusal_told: AtomicBool::new(false),
            turns: Semaphore::new(OPERATIONS_MAX),
        }
    }

    pub(super) async fn read(&self, device: &str) -> Result<DeviceRecord, Unread> {
        match self.run(READ, vec![device.to_owned()]).await? {
            ScriptReply::Nothing => Ok(DeviceRecord::default()),
            record => record_of(device, record),
        }
    }

    pub(super) async fn read_each(&self, devices: &[String]) -> Result<Vec<Option<DeviceRecord>>, StoreAway> {
        let mut records = Vec::with_capacity(devices.len());
        for step in devices.chunks(STEP_MAX) {
            for (device, record) in step.iter().zip(list(self.run(READ_EACH, step.to_vec()).await?)?) {
                let is_none = record == ScriptReply::Text(Default::default());
                records.push(if is_none { None } else { record_of(device, record).ok() });
            }
        }
        Ok(records)
    }

    pub(super) async fn swap(&self, device: &str, expected: u64, record: &DeviceRecord) -> SwapResult {
        let place = Place::of(record);
        let args = vec![
            device.to_owned(),
            expected.to_string(),
            record.epoch.to_string(),
            codec::write(record),
            place.code.unwrap_or_default().to_owned(),
            place.replica.unwrap_or_default().to_owned(),
            place.owner.unwrap_or_default().to_owned(),
            place.life.unwrap_or_default().as_millis().to_string(),
            SWEEP_AFTER.as_millis().to_string(),
            SWEEP_MAX.to_string(),
        ];
        match self.run(SWAP, args).await {
            Ok(ScriptReply::Number(1)) => SwapResult::Won,
            Ok(ScriptReply::Number(0)) => SwapResult::Lost,
            Ok(_) | Err(StoreAway) => SwapResult::Away,
        }
    }

    /// Of all devices, or of those of an owner.
    pub(super) async fn page(
        &self,
        owner: Option<&str>,
        after: Option<&str>,
        count: usize,
    ) -> Result<Vec<(String, DeviceRecord)>, StoreAway> {
        let owner = owner.unwrap_or_default();
        let mut page = Vec::with_capacity(count);
        let mut from = after.map_or_else(|| "-".to_owned(), |after| format!("({after}"));
        // Each step goes on behind the last one.
        while page.len() < count {
            let asked = (count - page.len()).clamp(STEP_MIN, STEP_MAX);
            let mut found = list(self.run(PAGE, vec![from, asked.to_string(), owner.to_owned()]).await?)?.into_iter();
            let (mut seen, mut last) = (0, String::new());
            while let (Some(device), Some(record)) = (found.next(), found.next()) {
                (seen, last) = (seen + 1, text(device)?);
                if record != ScriptReply::Nothing && page.len() < count {
                    match record_of(&last, record) {
                        Ok(record) => page.push((last.clone(), record)),
                        Err(Unread::Unreadable) => {}
                        Err(Unread::Away) => return Err(StoreAway),
                    }
                }
            }
            if seen < asked {
                break;
            }
            from = format!("({last}");
        }
        Ok(page)
    }

    pub(super) async fn by_pairing_code(&self, code: &str) -> Result<Option<String>, StoreAway> {
        match self.run(BY_CODE, vec![code.to_owned()]).await? {
            ScriptReply::Nothing => Ok(None),
            device => text(device).map(Some),
        }
    }

    pub(super) async fn of_replica(&self, replica: &str) -> Result<Vec<String>, StoreAway> {
        // A device may be found twice.
        let mut devices = BTreeSet::new();
        let mut cursor = "0".to_owned();
        for _ in 0..STEPS_MAX {
            let args = vec![replica.to_owned(), cursor, STEP_MAX.to_string()];
            let [next, found] = list(self.run(OF_REPLICA, args).await?)?.try_into().map_err(|_| unexpected())?;
            for device in list(found)? {
                devices.insert(text(device)?);
            }
            cursor = text(next)?;
            if cursor == "0" {
                return Ok(devices.into_iter().collect());
            }
        }
        Err(StoreAway)
    }

    pub(super) async fn replicas(&self) -> Result<Vec<String>, StoreAway> {
        let replicas = list(self.run(REPLICAS, Vec::new()).await?)?;
        let replicas = replicas.into_iter().map(text).collect::<Result<BTreeSet<_>, _>>()?;
        Ok(replicas.into_iter().collect())
    }

    async fn run(&self, script: &'static str, args: Vec<String>) -> Result<ScriptReply, StoreAway> {
        let args = args.into_iter().map(Into::into).collect();
        let _turn = self.turns.acquire().await.map_err(|_| StoreAway)?;
        let reply = self.redis.evaluate(script, vec![self.base.clone()], args).await;
        reply.inspect(|_| self.is_refusal_told.store(false, Ordering::Relaxed)).map_err(|error| self.away(&error))
    }

    /// What is wrong with the connection is told by who looks after it.
    fn away(&self, error: &TransportError) -> StoreAway {
        let is_refusal = matches!(error, TransportError::Refused(_) | TransportError::Reply(_));
        if is_refusal && !self.is_refusal_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, "Redis does not keep the records of devices");
        }
        StoreAway
    }
}

fn record_of(device: &str, reply: ScriptReply) -> Result<DeviceRecord, Unread> {
    let ScriptReply::Text(text) = reply else { return Err(unexpected().into()) };
    codec::read(&text).map_err(|error| {
        metrics::counter!("pointwork_device_records_malformed_total").increment(1);
        tracing::warn!(device, %error, "the record of a device cannot be read");
        Unread::Unreadable
    })
}

fn list(reply: ScriptReply) -> Result<Vec<ScriptReply>, StoreAway> {
    match reply {
        ScriptReply::List(values) => Ok(values),
        _ => Err(unexpected()),
    }
}

fn text(reply: ScriptReply) -> Result<String, StoreAway> {
    match reply {
        ScriptReply::Text(text) => String::from_utf8(text.into()).map_err(|_| unexpected()),
        _ => Err(unexpected()),
    }
}

/// What no script of these gives: somebody else wrote to its keys.
fn unexpected() -> StoreAway {
    tracing::warn!("Redis holds something else where the records of devices belong");
    StoreAway
}
