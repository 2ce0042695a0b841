//! Decision records: keeps the question and the answer of each decision in memory, and writes them to files and to a Redis stream
//! if the settings say so.
//!
//! A decision only takes a short lock and hands its question over. Records become text when they are read or written. A writer that
//! is too slow loses records, which are counted, and never delays a decision.

mod file;
mod ring;
mod sink;
mod stream;

use parking_lot::Mutex;
use std::sync::Arc;

use anyhow::{Context, bail};
use pointwork_policy::{
    By, Decision, SlotName,
    record::{Decider, DecisionRecord, Recorded},
};
use socketioxide_redis_streams::transport::redis::Redis;

use self::{ring::Ring, sink::Sink};
use crate::config::{RecordsConfig, Share};

/// The recorder of a replica.
pub struct Records {
    replica: Arc<str>,
    /// The replica's part of the sample point of a record.
    replica_hash: u64,
    rings: [Mutex<Ring>; 4],
    has_rings: bool,
    sample: Share,
    sinks: Vec<Sink>,
}

impl Records {
    /// Starts the writers; call it within a Tokio runtime. `replica` is the id of this process. `redis` is the Redis of the cluster and
    /// the prefix of its keys.
    ///
    /// # Errors
    /// When the file cannot be written, or when a stream is configured without Redis.
    pub fn start(
        settings: &RecordsConfig,
        replica: &str,
        redis: Option<(&Arc<Redis>, &str)>,
    ) -> anyhow::Result<Arc<Self>> {
        let mut sinks = Vec::new();
        if let Some(path) = &settings.file {
            let max_bytes = u64::from(settings.file_mib.get()) << 20;
            let sink = file::start(path, max_bytes, settings.files.as_usize());
            sinks.push(sink.with_context(|| format!("policy.records.file: {}", path.display()))?);
        }
        if settings.stream {
            let Some((redis, prefix)) = redis else { bail!("policy.records.stream: there is no redis.url") };
            sinks.push(stream::start(redis.clone(), prefix, settings.stream_max.get()));
        }
        let records_max = settings.ring.as_usize();
        Ok(Arc::new(Self {
            replica: replica.into(),
            replica_hash: pointwork_policy::user_key(replica),
            rings: SlotName::ALL.map(|_| Mutex::new(Ring::new(records_max))),
            has_rings: records_max > 0,
            sample: settings.sample,
            sinks,
        }))
    }

    /// Records a decision. `arm`: the arm of the experiment that made it.
    pub fn note<S: Recorded>(&self, question: S::Question, decision: &Decision<S::Verdict>, arm: Option<Arc<str>>) {
        let is_written = !self.sinks.is_empty() && self.sample.holds(self.sample_point(decision.id));
        if !self.has_rings && !is_written {
            return;
        }
        let (by, failure) = match decision.by {
            By::Wasm { .. } => (Decider::Wasm, None),
            By::Native { reason } => (Decider::Native, reason),
        };
        let record = Arc::new(DecisionRecord {
            replica: self.replica.clone(),
            decision: decision.id,
            at_ms: S::moment(&question).now_ms,
            by,
            failure,
            digest: decision.digest,
            arm,
            cost: decision.cost,
            exchange: S::exchange(question, decision.verdict),
        });
        if is_written {
            self.sinks.iter().for_each(|sink| sink.offer(&record));
        }
        if self.has_rings {
            // Removed records are freed after the lock is released.
            let removed = self.rings[S::NAME as usize].lock().push(record);
            drop(removed);
        }
    }

    /// The last decisions of a slot or of all slots, at most `limit`, in the order in which they were made.
    pub fn latest(&self, slot: Option<SlotName>, limit: usize) -> Vec<Arc<DecisionRecord>> {
        let rings = SlotName::ALL.into_iter().filter(|name| slot.is_none_or(|slot| slot == *name));
        let mut records: Vec<_> = rings.flat_map(|name| self.rings[name as usize].lock().latest(limit)).collect();
        records.sort_unstable_by_key(|record| record.decision);
        let surplus = records.len().saturating_sub(limit);
        records.split_off(surplus)
    }

    /// Waits until all records are written, for two seconds at most.
    pub async fn close(&self) {
        for sink in &self.sinks {
            sink.close().await;
        }
    }

    /// An evenly distributed number that is always the same for a decision: SplitMix64 of its id.
    fn sample_point(&self, decision: u64) -> u64 {
        let mixed = (self.replica_hash ^ decision).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests;
