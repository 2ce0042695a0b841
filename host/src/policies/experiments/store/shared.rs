//! The experiments of a cluster. Each operation is one script, or one for each page of units; none is tried twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use pointwork_core::experiment::Experiments as Known;
use socketioxide_redis_streams::transport::redis::{Redis, ScriptReply};

use super::{
    CELLS_MAX, Exposed, Modules, Row, StoreError, Stored, UNITS_MAX, UNNEEDED_MAX, UserGuard, UserSums, parse, written,
};
use crate::policies::assignments::{Cell, UserDelta};

const READ: &str = include_str!("lua/read.lua");
const SWAP: &str = include_str!("lua/swap.lua");
const PUT: &str = include_str!("lua/put.lua");
const MODULE: &str = include_str!("lua/module.lua");
const LEASE: &str = include_str!("lua/lease.lua");
const EXPOSE: &str = include_str!("lua/expose.lua");
const EXPOSED: &str = include_str!("lua/exposed.lua");
const FINISH: &str = include_str!("lua/finish.lua");
const FINISHED: &str = include_str!("lua/finished.lua");
const USERS: &str = include_str!("lua/users.lua");
const SUMS: &str = include_str!("lua/sums.lua");
const DISAGREE: &str = include_str!("lua/disagree.lua");
const CELLS: &str = include_str!("lua/cells.lua");

/// How long a module is kept that no experiment needs (any more): a week, in milliseconds.
const MODULE_LIFE_MS: u64 = 7 * 24 * 3_600_000;
/// How long units are kept after the last change: 30 days, in milliseconds.
const UNITS_LIFE_MS: u64 = 30 * 24 * 3_600_000;
/// For how long a replica has its turn, in milliseconds.
const LEASE_MS: u64 = 3_000;
/// Units in one script.
const PAGE: usize = 500;
/// Pages of what is over at most: an emptied page of a scan is no end.
const SCANS_MAX: usize = 10_000;

/// See the head.
pub(crate) struct Shared {
    redis: Arc<Redis>,
    prefix: String,
}

impl Shared {
    pub(super) fn new(redis: Arc<Redis>, prefix: &str) -> Self {
        Self { redis, prefix: prefix.to_owned() }
    }

    pub(super) async fn read(&self) -> Result<Known, StoreError> {
        match self.run_all(READ, Vec::new()).await? {
            ScriptReply::Nothing => Ok(Known::default()),
            ScriptReply::Text(text) => parse(&text),
            _ => Err(unexpected()),
        }
    }

    pub(super) async fn swap(&self, expected: u64, next: &Known) -> Result<bool, StoreError> {
        let Modules { needed, kept, others } = Modules::of(next);
        let mut args = vec![number(expected), number(next.version), written(next).into(), number(MODULE_LIFE_MS)];
        args.extend([UNNEEDED_MAX, needed.len(), kept.len()].map(|count| number(count as u64)));
        args.extend(needed.into_iter().chain(kept).chain(others).map(text));
        match self.run_all(SWAP, args).await? {
            ScriptReply::Number(1) => Ok(true),
            ScriptReply::Number(0) => Ok(false),
            ScriptReply::Number(-1) => Err(StoreError::NoModule),
            _ => Err(unexpected()),
        }
    }

    pub(super) async fn put_module(&self, digest: &str, module: Stored) -> Result<(), StoreError> {
        let (life_ms, unneeded_max) = (number(MODULE_LIFE_MS), number(UNNEEDED_MAX as u64));
        let args = vec![text(digest), module.wasm, module.config.into(), life_ms, unneeded_max];
        self.run_all(PUT, args).await.map(drop)
    }

    pub(super) async fn module(&self, digest: &str) -> Result<Option<Stored>, StoreError> {
        match self.run_all(MODULE, vec![text(digest)]).await? {
            ScriptReply::Nothing => Ok(None),
            ScriptReply::List(found) => {
                let [wasm, config] = <[ScriptReply; 2]>::try_from(found).map_err(|_| unexpected())?;
                let ScriptReply::Text(wasm) = wasm else { return Err(unexpected()) };
                Ok(Some(Stored { wasm, config: words(config)? }))
            }
            _ => Err(unexpected()),
        }
    }

    pub(super) async fn lease(&self, uid: &str) -> Result<bool, StoreError> {
        Ok(self.run_all(LEASE, vec![text(uid), number(LEASE_MS)]).await? == ScriptReply::Number(1))
    }

    pub(super) async fn expose(&self, id: &str, units: &BTreeSet<String>) -> Result<u64, StoreError> {
        let mut refused = 0;
        let units: Vec<&String> = units.iter().collect();
        for page in units.chunks(PAGE) {
            let mut args = vec![number(UNITS_MAX as u64), number(UNITS_LIFE_MS)];
            args.extend(page.iter().map(|unit| text(unit)));
            refused += count(&self.run(id, EXPOSE, args).await?)?;
        }
        Ok(refused)
    }

    pub(super) async fn exposed(&self, id: &str, since_ms: u64) -> Result<Exposed, StoreError> {
        let mut found: Option<Exposed> = None;
        for at in (0..UNITS_MAX).step_by(PAGE) {
            let args = vec![number(since_ms), number(at as u64), number(PAGE as u64)];
            let reply = list(self.run(id, EXPOSED, args).await?)?;
            let [now_ms, page] = <[ScriptReply; 2]>::try_from(reply).map_err(|_| unexpected())?;
            let now_ms = words(now_ms)?.parse().map_err(|_| unexpected())?;
            // What is noted while pages are read comes next time: the moment is that of the first.
            let found = found.get_or_insert_with(|| Exposed { now_ms, ..Exposed::default() });
            let page = list(page)?;
            let is_last = page.len() < PAGE;
            for unit in page {
                found.units.insert(words(unit)?);
            }
            if is_last {
                break;
            }
        }
        Ok(found.unwrap_or_default())
    }

    pub(super) async fn finish(&self, id: &str, rows: &[(String, Row)]) -> Result<(), StoreError> {
        for page in rows.chunks(PAGE) {
            let mut args = vec![number(UNITS_LIFE_MS)];
            for (unit, row) in page {
                let row = serde_json::to_string(row).map_err(|error| StoreError::Unreadable(error.to_string()))?;
                args.extend([text(unit), row.into()]);
            }
            self.run(id, FINISH, args).await?;
        }
        Ok(())
    }

    pub(super) async fn finished(&self, id: &str) -> Result<BTreeMap<String, Row>, StoreError> {
        let (mut rows, mut cursor) = (BTreeMap::new(), "0".to_owned());
        for _ in 0..SCANS_MAX {
            let page = list(self.run(id, FINISHED, vec![text(&cursor), number(PAGE as u64)]).await?)?;
            let [next, found] = <[ScriptReply; 2]>::try_from(page).map_err(|_| unexpected())?;
            let mut found = list(found)?.into_iter();
            while let (Some(unit), Some(row)) = (found.next(), found.next()) {
                let row = words(row).ok().and_then(|row| serde_json::from_str(&row).ok());
                match (words(unit), row) {
                    (Ok(unit), Some(row)) => _ = rows.insert(unit, row),
                    _ => skipped(),
                }
            }
            cursor = words(next)?;
            if cursor == "0" {
                break;
            }
        }
        Ok(rows)
    }

    pub(super) async fn add_users(&self, id: &str, users: &BTreeMap<String, UserDelta>) -> Result<u64, StoreError> {
        let mut refused = 0;
        let users: Vec<(&String, &UserDelta)> = users.iter().collect();
        for page in users.chunks(PAGE) {
            let horizon_ms = page.first().map_or(0, |(_, delta)| delta.horizon_ms);
            let mut args = vec![number(UNITS_MAX as u64), number(UNITS_LIFE_MS), number(horizon_ms.into())];
            for (user, delta) in page {
                args.extend([text(user), number(delta.at_ms), number(delta.arm as u64)]);
                args.push(weights_text(&delta.weights).into());
                args.push(number(delta.counts.len() as u64));
                args.extend(delta.counts.iter().flat_map(|(name, count)| [text(name), number(*count)]));
            }
            refused += count(&self.run(id, USERS, args).await?)?;
        }
        Ok(refused)
    }

    pub(super) async fn users(&self, id: &str, units: &[String]) -> Result<Vec<Option<UserSums>>, StoreError> {
        let mut users = Vec::with_capacity(units.len());
        for page in units.chunks(PAGE) {
            let found = list(self.run(id, SUMS, page.iter().map(|unit| text(unit)).collect()).await?)?;
            for one in found {
                users.push(sums(list(one)?).unwrap_or_else(|_| {
                    skipped();
                    None
                }));
            }
        }
        Ok(users)
    }

    pub(super) async fn add_cells(&self, id: &str, cells: &[(Cell, u64)]) -> Result<(), StoreError> {
        for page in cells.chunks(PAGE) {
            let mut args = vec![number(CELLS_MAX as u64), number(UNITS_LIFE_MS)];
            for (cell, count) in page {
                let name = format!("{}\n{}\n{}", cell.arm, cell.served, cell.shadow);
                args.extend([name.into(), number(*count)]);
            }
            self.run(id, DISAGREE, args).await?;
        }
        Ok(())
    }

    pub(super) async fn cells(&self, id: &str) -> Result<BTreeMap<Cell, u64>, StoreError> {
        let mut found = list(self.run(id, CELLS, Vec::new()).await?)?.into_iter();
        let mut cells = BTreeMap::new();
        while let (Some(name), Some(count)) = (found.next(), found.next()) {
            let name = words(name)?;
            let mut parts = name.split('\n').map(str::to_owned);
            if let (Some(arm), Some(served), Some(shadow)) = (parts.next(), parts.next(), parts.next()) {
                cells.insert(Cell { arm, served, shadow }, words(count)?.parse().map_err(|_| unexpected())?);
            }
        }
        Ok(cells)
    }

    /// About all experiments.
    async fn run_all(&self, script: &'static str, args: Vec<Bytes>) -> Result<ScriptReply, StoreError> {
        Ok(self.redis.evaluate(script, vec![format!("{}#experiments", self.prefix)], args).await?)
    }

    /// About one.
    async fn run(&self, id: &str, script: &'static str, args: Vec<Bytes>) -> Result<ScriptReply, StoreError> {
        Ok(self.redis.evaluate(script, vec![format!("{}#experiment:{id}", self.prefix)], args).await?)
    }
}

fn weights_text(weights: &[u32]) -> String {
    weights.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// One that is not known is an empty list.
fn sums(fields: Vec<ScriptReply>) -> Result<Option<UserSums>, StoreError> {
    let mut fields = fields.into_iter();
    let mut sums = UserSums::default();
    let mut guard = UserGuard::default();
    let mut is_known = false;
    while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
        let (name, value) = (words(name)?, words(value)?);
        let whole = || value.parse::<u64>().map_err(|_| unexpected());
        match name.as_str() {
            "at" => (sums.exposed_ms, is_known) = (whole()?, true),
            "arm" => sums.arm = value.parse().map_err(|_| unexpected())?,
            "weights" => {
                let weights = value.split(',').map(str::parse).collect::<Result<_, _>>();
                sums.weights = weights.map_err(|_| unexpected())?;
            }
            "guard:at" => guard.since_ms = whole()?,
            "guard:arm" => guard.arm = value.parse().map_err(|_| unexpected())?,
            "guard:decisions" => guard.decisions = whole()?,
            "guard:failures" => guard.failures = whole()?,
            name => {
                if let Some(name) = name.strip_prefix("n:") {
                    sums.counts.insert(name.to_owned(), whole()?);
                }
            }
        }
    }
    // The control has none.
    sums.guard = (guard.arm > 0).then_some(guard);
    Ok(is_known.then_some(sums))
}

/// What became of a unit cannot be read: it is in no figure.
fn skipped() {
    metrics::counter!("pointwork_experiment_units_unreadable_total").increment(1);
}

fn list(reply: ScriptReply) -> Result<Vec<ScriptReply>, StoreError> {
    match reply {
        ScriptReply::List(values) => Ok(values),
        _ => Err(unexpected()),
    }
}

fn words(reply: ScriptReply) -> Result<String, StoreError> {
    match reply {
        ScriptReply::Text(text) => String::from_utf8(text.into()).map_err(|_| unexpected()),
        _ => Err(unexpected()),
    }
}

fn count(reply: &ScriptReply) -> Result<u64, StoreError> {
    match reply {
        ScriptReply::Number(number) => u64::try_from(*number).map_err(|_| unexpected()),
        _ => Err(unexpected()),
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
