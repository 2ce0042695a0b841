//! Reads and writes in Redis what replicas share of policies. All keys begin with the prefix of the cluster's channels and
//! `#policy:`.
//!
//! | key | type | holds |
//! |---|---|---|
//! | `slot:<slot>` | string | the slot's document, see [`codec`]; changed by compare-and-set |
//! | `module:<slot>:<digest>` | hash | `wasm`, `config` (JSON), `pushed_ms`; only of modules that the document names |
//! | `report:<slot>` | hash | by replica: when it reported and what, see [`codec`] |
//!
//! Each operation is one script; none is retried.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use pointwork_core::rollout::{Digest, Document, ReplicaReport, Uid};
use pointwork_policy::SlotName;
use socketioxide_redis_streams::transport::TransportError;
use socketioxide_redis_streams::transport::redis::{Redis, ScriptReply};

use super::codec;
use crate::cluster::scripts::{FromReply, Pairs, UnexpectedReply, number, run_script, text};
use crate::policies::PolicyModule;

const TURN: &str = include_str!("lua/turn.lua");
const READ: &str = include_str!("lua/read.lua");
const WRITE: &str = include_str!("lua/write.lua");
const PUT: &str = include_str!("lua/put.lua");
const MODULE: &str = include_str!("lua/module.lua");
const LEAVE: &str = include_str!("lua/leave.lua");

/// The age from which a report belongs to a replica that is gone, in milliseconds.
const SILENT_MS: u64 = 10_000;
/// How long reports outlive the last replica.
const REPORTS_LIFE_MS: u64 = 60_000;
/// How long a module that no document names is kept.
const MODULE_LIFE_MS: u64 = 600_000;

/// Why Redis cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RolloutStoreError {
    /// Redis is away, did not answer in time, or refuses.
    #[error("Redis is away: {0}")]
    Away(#[from] TransportError),
    /// Another program or a later version wrote to these keys.
    #[error("what Redis holds of policies cannot be read: {0}")]
    Unreadable(String),
}

impl From<UnexpectedReply> for RolloutStoreError {
    fn from(_: UnexpectedReply) -> Self {
        Self::Unreadable("another kind of value".to_owned())
    }
}

/// The result of reading or writing Redis.
pub(super) type RolloutStoreResult<T> = Result<T, RolloutStoreError>;

/// A slot's document, and its text as it is stored.
#[derive(Debug, Clone, Default)]
pub(super) struct StoredDocument {
    pub(super) text: Bytes,
    pub(super) document: Document,
}

/// By replica: when it reported, and what.
pub(super) type Reports = BTreeMap<Uid, (u64, ReplicaReport)>;

/// What Redis holds of one slot.
pub(super) struct StoredSlot {
    pub(super) stored: RolloutStoreResult<StoredDocument>,
    /// Whether the module is stored that this replica serves.
    pub(super) is_serving_stored: bool,
    pub(super) reports: Reports,
}

pub(super) struct RolloutStore {
    redis: Arc<Redis>,
    key_prefix: String,
}

impl RolloutStore {
    pub(super) fn new(redis: Arc<Redis>, prefix: &str) -> Self {
        Self { redis, key_prefix: format!("{prefix}#policy:") }
    }

    /// Writes a replica's report of each slot, and reads all slots. Returns the store's clock and the slots.
    pub(super) async fn turn(
        &self,
        uid: &str,
        reports: &[(SlotName, ReplicaReport)],
    ) -> RolloutStoreResult<(u64, Vec<StoredSlot>)> {
        let mut args: Vec<Bytes> = vec![text(uid), number(SILENT_MS), number(REPORTS_LIFE_MS)];
        for (slot, report) in reports {
            let serving = report.serving.as_deref().unwrap_or_default();
            args.extend([text(slot.as_str()), text(&codec::write_report(report)), text(serving)]);
        }
        let mut replies = self.run::<Vec<ScriptReply>>(TURN, args).await?.into_iter();
        let now_ms = u64::from_reply(replies.next().ok_or(UnexpectedReply)?)?;
        let slots = replies.map(stored_slot).collect::<Result<Vec<_>, _>>()?;
        if slots.len() == reports.len() { Ok((now_ms, slots)) } else { Err(UnexpectedReply.into()) }
    }

    /// Reads the store's clock, a slot's document, and whether a module is stored.
    pub(super) async fn read(&self, slot: SlotName, digest: &str) -> RolloutStoreResult<(u64, StoredDocument, bool)> {
        let args = vec![text(slot.as_str()), text(digest)];
        let (now_ms, document, is_stored): (_, _, ScriptReply) = self.run(READ, args).await?;
        Ok((now_ms, stored_document(document)?, is_stored == ScriptReply::Number(1)))
    }

    /// Replaces the document `former` by `next`, and stores the module that is pushed with it. Returns false when another change
    /// was faster.
    pub(super) async fn write(
        &self,
        slot: SlotName,
        former: &StoredDocument,
        next: &Document,
        pushed: Option<(&Digest, &PolicyModule, u64)>,
    ) -> RolloutStoreResult<bool> {
        let kept = next.modules();
        let former_modules = former.document.modules();
        let dropped: Vec<_> = former_modules.difference(&kept).collect();
        let document = codec::write_document(next);
        let mut args = vec![text(slot.as_str()), former.text.clone(), text(&document), number(kept.len() as u64)];
        args.extend(kept.iter().map(|digest| text(digest)));
        args.push(number(dropped.len() as u64));
        args.extend(dropped.into_iter().map(|digest| text(digest)));
        if let Some((digest, module, pushed_ms)) = pushed {
            args.extend([text(digest), module.wasm.clone(), text(&module.config), number(pushed_ms)]);
        }
        Ok(self.run::<i64>(WRITE, args).await? == 1)
    }

    /// Stores a module again.
    pub(super) async fn put(
        &self,
        slot: SlotName,
        digest: &str,
        module: &PolicyModule,
        now_ms: u64,
    ) -> RolloutStoreResult<()> {
        let (wasm, config) = (module.wasm.clone(), text(&module.config));
        let args = vec![text(slot.as_str()), text(digest), wasm, config, number(now_ms), number(MODULE_LIFE_MS)];
        self.run(PUT, args).await
    }

    /// Reads a module; `None` when it is not stored.
    pub(super) async fn module(&self, slot: SlotName, digest: &str) -> RolloutStoreResult<Option<PolicyModule>> {
        self.run(MODULE, vec![text(slot.as_str()), text(digest)]).await
    }

    /// Deletes a replica's reports.
    pub(super) async fn leave(&self, uid: &str) -> RolloutStoreResult<()> {
        let slots = SlotName::ALL.iter().map(|slot| text(slot.as_str()));
        self.run(LEAVE, std::iter::once(text(uid)).chain(slots).collect()).await
    }

    async fn run<T: FromReply>(&self, script: &'static str, args: Vec<Bytes>) -> RolloutStoreResult<T> {
        run_script(&self.redis, script, self.key_prefix.clone(), args).await
    }
}

fn stored_slot(reply: ScriptReply) -> RolloutStoreResult<StoredSlot> {
    let (document, is_stored, replies): (_, ScriptReply, Pairs<ScriptReply, ScriptReply>) =
        FromReply::from_reply(reply)?;
    // A report of a later version is skipped.
    let report = |(uid, report)| {
        let (uid, report) = (String::from_reply(uid).ok()?, String::from_reply(report).ok()?);
        Some((uid.into(), codec::read_report(&report)?))
    };
    let reports = replies.0.into_iter().filter_map(report).collect();
    Ok(StoredSlot {
        stored: stored_document(document),
        is_serving_stored: is_stored == ScriptReply::Number(1),
        reports,
    })
}

fn stored_document(reply: ScriptReply) -> RolloutStoreResult<StoredDocument> {
    let text = Bytes::from_reply(reply)?;
    let document = codec::read_document(&text).map_err(|error| RolloutStoreError::Unreadable(error.to_string()))?;
    Ok(StoredDocument { text, document })
}
