//! What replicas share of policies, in Redis. All keys begin with the prefix of the cluster's channels and `#policy:`.
//!
//! | key | type | holds |
//! |---|---|---|
//! | `slot:<slot>` | string | the slot's document, see [`codec`]; changed by compare-and-set |
//! | `module:<slot>:<digest>` | hash | `wasm`, `config` (JSON), `pushed_ms`; of those that the document names, no others |
//! | `report:<slot>` | hash | by replica: when it reported and what, see [`codec`] |
//!
//! Each operation is one script; none is tried twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use pointwork_core::rollout::{Digest, Document, Report, Uid};
use pointwork_policy::SlotName;
use socketioxide_redis_streams::transport::TransportError;
use socketioxide_redis_streams::transport::redis::{Redis, ScriptReply};

use super::codec;

const TURN: &str = include_str!("lua/turn.lua");
const READ: &str = include_str!("lua/read.lua");
const WRITE: &str = include_str!("lua/write.lua");
const PUT: &str = include_str!("lua/put.lua");
const MODULE: &str = include_str!("lua/module.lua");
const LEAVE: &str = include_str!("lua/leave.lua");

/// A report that is older is of a replica that is gone, in milliseconds.
const SILENT_MS: u64 = 10_000;
/// How long reports outlive the last replica.
const REPORTS_LIFE_MS: u64 = 60_000;
/// How long a module is kept that no document names yet.
const MODULE_LIFE_MS: u64 = 600_000;

/// Redis could not be asked, or holds what is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It is away, did not answer in time, or refuses.
    #[error("Redis is away: {0}")]
    Away(#[from] TransportError),
    /// Somebody else wrote to these keys, or a later version did.
    #[error("what Redis holds of policies cannot be read: {0}")]
    Unreadable(String),
}

/// A module with its configuration.
#[derive(Clone, PartialEq, Eq)]
pub struct Module {
    /// The component.
    pub wasm: Bytes,
    /// A JSON object on one line.
    pub config: String,
}

/// A slot's document and the very text of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Read {
    pub(super) text: Bytes,
    pub(super) document: Document,
}

/// What a replica reported, and when.
pub(super) type Reports = BTreeMap<Uid, (u64, Report)>;

/// What a look shows of one slot.
pub(super) struct Looked {
    pub(super) read: Result<Read, StoreError>,
    pub(super) is_serving_stored: bool,
    pub(super) reports: Reports,
}

pub(super) struct Store {
    redis: Arc<Redis>,
    base: String,
}

impl Store {
    pub(super) fn new(redis: Arc<Redis>, prefix: &str) -> Self {
        Self { redis, base: format!("{prefix}#policy:") }
    }

    /// Reports of each slot what a replica says of itself, and looks; gives the store's clock and what is there.
    pub(super) async fn turn(
        &self,
        uid: &str,
        reports: &[(SlotName, Report)],
    ) -> Result<(u64, Vec<Looked>), StoreError> {
        let mut args: Vec<Bytes> = vec![text(uid), number(SILENT_MS), number(REPORTS_LIFE_MS)];
        for (slot, report) in reports {
            let serving = report.serving.as_deref().unwrap_or_default();
            args.extend([text(slot.as_str()), text(&codec::write_report(report)), text(serving)]);
        }
        let mut answer = list(self.run(TURN, args).await?)?.into_iter();
        let now_ms = clock(answer.next())?;
        let slots = answer.map(looked).collect::<Result<Vec<_>, _>>()?;
        if slots.len() == reports.len() { Ok((now_ms, slots)) } else { Err(unexpected()) }
    }

    /// The store's clock, a slot's document, and whether a module is there.
    pub(super) async fn read(&self, slot: SlotName, digest: &str) -> Result<(u64, Read, bool), StoreError> {
        let answer = list(self.run(READ, vec![text(slot.as_str()), text(digest)]).await?)?;
        let [now, document, is_stored] = answer.try_into().map_err(|_| unexpected())?;
        Ok((clock(Some(now))?, read_document(document)?, is_stored == ScriptReply::Number(1)))
    }

    /// Writes `next` in the place of `was`, with a module that is pushed; false when another was faster.
    pub(super) async fn write(
        &self,
        slot: SlotName,
        was: &Read,
        next: &Document,
        pushed: Option<(&Digest, &Module, u64)>,
    ) -> Result<bool, StoreError> {
        let kept = next.modules();
        let former = was.document.modules();
        let dropped: Vec<_> = former.difference(&kept).collect();
        let document = codec::write_document(next);
        let mut args = vec![text(slot.as_str()), was.text.clone(), text(&document), number(kept.len() as u64)];
        args.extend(kept.iter().map(|digest| text(digest)));
        args.push(number(dropped.len() as u64));
        args.extend(dropped.into_iter().map(|digest| text(digest)));
        if let Some((digest, module, pushed_ms)) = pushed {
            args.extend([text(digest), module.wasm.clone(), text(&module.config), number(pushed_ms)]);
        }
        match self.run(WRITE, args).await? {
            ScriptReply::Number(won) => Ok(won == 1),
            _ => Err(unexpected()),
        }
    }

    /// Puts a module back.
    pub(super) async fn put(
        &self,
        slot: SlotName,
        digest: &str,
        module: &Module,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let args = vec![
            text(slot.as_str()),
            text(digest),
            module.wasm.clone(),
            text(&module.config),
            number(now_ms),
            number(MODULE_LIFE_MS),
        ];
        self.run(PUT, args).await.map(drop)
    }

    /// A module; `None` when it is not there.
    pub(super) async fn module(&self, slot: SlotName, digest: &str) -> Result<Option<Module>, StoreError> {
        let reply = self.run(MODULE, vec![text(slot.as_str()), text(digest)]).await?;
        if reply == ScriptReply::Nothing {
            return Ok(None);
        }
        let [wasm, config] = list(reply)?.try_into().map_err(|_| unexpected())?;
        let (ScriptReply::Text(wasm), ScriptReply::Text(config)) = (wasm, config) else { return Err(unexpected()) };
        let config = String::from_utf8(config.into()).map_err(|_| unexpected())?;
        Ok(Some(Module { wasm, config }))
    }

    /// Forgets what a replica reported.
    pub(super) async fn leave(&self, uid: &str) -> Result<(), StoreError> {
        let slots = SlotName::ALL.iter().map(|slot| text(slot.as_str()));
        self.run(LEAVE, std::iter::once(text(uid)).chain(slots).collect()).await.map(drop)
    }

    async fn run(&self, script: &'static str, args: Vec<Bytes>) -> Result<ScriptReply, StoreError> {
        Ok(self.redis.evaluate(script, vec![self.base.clone()], args).await?)
    }
}

fn looked(reply: ScriptReply) -> Result<Looked, StoreError> {
    let [document, is_stored, reports] = list(reply)?.try_into().map_err(|_| unexpected())?;
    let mut reports = list(reports)?.into_iter();
    let mut read = Reports::new();
    while let (Some(uid), Some(report)) = (reports.next(), reports.next()) {
        // One of a later version says nothing here.
        if let (Some(uid), Some(report)) = (words(uid), words(report).and_then(|text| codec::read_report(&text))) {
            read.insert(uid.into(), report);
        }
    }
    let is_serving_stored = is_stored == ScriptReply::Number(1);
    Ok(Looked { read: read_document(document), is_serving_stored, reports: read })
}

fn read_document(reply: ScriptReply) -> Result<Read, StoreError> {
    let ScriptReply::Text(text) = reply else { return Err(unexpected()) };
    let document = codec::read_document(&text).map_err(|error| StoreError::Unreadable(error.to_string()))?;
    Ok(Read { text, document })
}

fn clock(reply: Option<ScriptReply>) -> Result<u64, StoreError> {
    reply.and_then(words).and_then(|text| text.parse().ok()).ok_or_else(unexpected)
}

fn list(reply: ScriptReply) -> Result<Vec<ScriptReply>, StoreError> {
    match reply {
        ScriptReply::List(values) => Ok(values),
        _ => Err(unexpected()),
    }
}

fn words(reply: ScriptReply) -> Option<String> {
    match reply {
        ScriptReply::Text(text) => String::from_utf8(text.into()).ok(),
        _ => None,
    }
}

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn number(number: u64) -> Bytes {
    number.to_string().into()
}

fn unexpected() -> StoreError {
    StoreError::Unreadable("another kind of value".to_owned())
}
