//! Stores the experiments of a cluster in Redis. Each operation is one script, or one for each page of units; none is retried.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use pointwork_core::experiments::Experiments as ExperimentList;
use socketioxide_redis_streams::transport::redis::{Redis, ScriptReply};

use super::{
    codec::{read_list, write_list},
    error::{ExperimentStoreError, ExperimentStoreResult},
    module_digests::{ModuleDigests, UNNEEDED_MAX},
    units::{CELLS_MAX, ExposedUnits, UNITS_MAX, UnitRow, UserGuard, UserSums},
};
use crate::{
    cluster::scripts::{FromReply, Pairs, UnexpectedReply, number, run_script, text},
    policies::{
        PolicyModule,
        assignments::{DisagreementCell, UserDelta},
    },
};

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

/// How long a module that no experiment needs is kept: a week, in milliseconds.
const MODULE_LIFE_MS: u64 = 7 * 24 * 3_600_000;
/// How long units are kept after the last change: 30 days, in milliseconds.
const UNITS_LIFE_MS: u64 = 30 * 24 * 3_600_000;
/// How long a replica's turn lasts, in milliseconds.
const LEASE_MS: u64 = 3_000;
/// The most units in one script.
const PAGE: usize = 500;
/// The most pages of finished units. An empty page does not end a scan.
const SCANS_MAX: usize = 10_000;

/// Keeps everything in Redis.
pub(crate) struct RedisStore {
    redis: Arc<Redis>,
    prefix: String,
}

impl RedisStore {
    pub(super) fn new(redis: Arc<Redis>, prefix: &str) -> Self {
        Self { redis, prefix: prefix.to_owned() }
    }

    pub(super) async fn read(&self) -> ExperimentStoreResult<ExperimentList> {
        let json: Option<Bytes> = self.run_all(READ, Vec::new()).await?;
        json.map_or_else(|| Ok(ExperimentList::default()), |json| read_list(&json))
    }

    pub(super) async fn swap(&self, expected: u64, next: &ExperimentList) -> ExperimentStoreResult<bool> {
        let ModuleDigests { needed, promoted, others } = ModuleDigests::of(next);
        let mut args = vec![number(expected), number(next.version), write_list(next).into(), number(MODULE_LIFE_MS)];
        args.extend([UNNEEDED_MAX, needed.len(), promoted.len()].map(|count| number(count as u64)));
        args.extend(needed.into_iter().chain(promoted).chain(others).map(text));
        match self.run_all(SWAP, args).await? {
            1_i64 => Ok(true),
            0 => Ok(false),
            -1 => Err(ExperimentStoreError::NoModule),
            _ => Err(UnexpectedReply.into()),
        }
    }

    pub(super) async fn put_module(&self, digest: &str, module: PolicyModule) -> ExperimentStoreResult<()> {
        let (life_ms, unneeded_max) = (number(MODULE_LIFE_MS), number(UNNEEDED_MAX as u64));
        self.run_all(PUT, vec![text(digest), module.wasm, module.config.into(), life_ms, unneeded_max]).await
    }

    pub(super) async fn module(&self, digest: &str) -> ExperimentStoreResult<Option<PolicyModule>> {
        self.run_all(MODULE, vec![text(digest)]).await
    }

    pub(super) async fn lease(&self, uid: &str) -> ExperimentStoreResult<bool> {
        Ok(self.run_all::<ScriptReply>(LEASE, vec![text(uid), number(LEASE_MS)]).await? == ScriptReply::Number(1))
    }

    pub(super) async fn expose(&self, id: &str, units: &BTreeSet<String>) -> ExperimentStoreResult<u64> {
        let head = [number(UNITS_MAX as u64), number(UNITS_LIFE_MS)];
        let units: Vec<&String> = units.iter().collect();
        self.run_pages(id, EXPOSE, &head, &units, |args, unit| args.push(text(unit))).await
    }

    pub(super) async fn exposed(&self, id: &str, since_ms: u64) -> ExperimentStoreResult<ExposedUnits> {
        let mut exposed = ExposedUnits::default();
        for at in (0..UNITS_MAX).step_by(PAGE) {
            let args = vec![number(since_ms), number(at as u64), number(PAGE as u64)];
            let (now_ms, page): (u64, Vec<String>) = self.run(id, EXPOSED, args).await?;
            if at == 0 {
                // Units that are noted while pages are read are found the next time.
                exposed.now_ms = now_ms;
            }
            let is_last = page.len() < PAGE;
            exposed.units.extend(page);
            if is_last {
                break;
            }
        }
        Ok(exposed)
    }

    pub(super) async fn finish(&self, id: &str, rows: &[(String, UnitRow)]) -> ExperimentStoreResult<()> {
        let head = [number(UNITS_LIFE_MS)];
        let written = self.run_pages(id, FINISH, &head, rows, |args, (unit, row)| {
            // JSON can express every row.
            args.extend([text(unit), serde_json::to_string(row).unwrap_or_default().into()]);
        });
        written.await.map(drop)
    }

    pub(super) async fn finished(&self, id: &str) -> ExperimentStoreResult<BTreeMap<String, UnitRow>> {
        let (mut rows, mut cursor) = (BTreeMap::new(), "0".to_owned());
        for _ in 0..SCANS_MAX {
            let args = vec![text(&cursor), number(PAGE as u64)];
            let (next, page): (String, Pairs<ScriptReply, ScriptReply>) = self.run(id, FINISHED, args).await?;
            for (unit, row) in page.0 {
                let row = Bytes::from_reply(row).ok().and_then(|row| serde_json::from_slice(&row).ok());
                match (String::from_reply(unit), row) {
                    (Ok(unit), Some(row)) => _ = rows.insert(unit, row),
                    _ => count_unreadable(),
                }
            }
            if next == "0" {
                break;
            }
            cursor = next;
        }
        Ok(rows)
    }

    pub(super) async fn add_users(&self, id: &str, users: &BTreeMap<String, UserDelta>) -> ExperimentStoreResult<u64> {
        // All deltas of an experiment have its horizon.
        let horizon_ms = users.values().next().map_or(0, |delta| delta.horizon_ms);
        let head = [number(UNITS_MAX as u64), number(UNITS_LIFE_MS), number(horizon_ms.into())];
        let users: Vec<_> = users.iter().collect();
        let added = self.run_pages(id, USERS, &head, &users, |args, (user, delta)| {
            let weights = delta.weights.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            args.extend([text(user), number(delta.at_ms), number(delta.arm as u64), weights.into()]);
            args.push(number(delta.counts.len() as u64));
            args.extend(delta.counts.iter().flat_map(|(name, count)| [text(name), number(*count)]));
        });
        added.await
    }

    pub(super) async fn users(&self, id: &str, units: &[String]) -> ExperimentStoreResult<Vec<Option<UserSums>>> {
        let mut users = Vec::with_capacity(units.len());
        for page in units.chunks(PAGE) {
            let replies: Vec<Vec<ScriptReply>> =
                self.run(id, SUMS, page.iter().map(|unit| text(unit)).collect()).await?;
            users.extend(replies.into_iter().map(|fields| {
                user_sums(ScriptReply::List(fields)).unwrap_or_else(|_| {
                    count_unreadable();
                    None
                })
            }));
        }
        Ok(users)
    }

    pub(super) async fn add_cells(&self, id: &str, cells: &[(DisagreementCell, u64)]) -> ExperimentStoreResult<()> {
        let head = [number(CELLS_MAX as u64), number(UNITS_LIFE_MS)];
        let added = self.run_pages(id, DISAGREE, &head, cells, |args, (cell, count)| {
            let name = format!("{}\n{}\n{}", cell.arm, cell.served, cell.shadow);
            args.extend([name.into(), number(*count)]);
        });
        added.await.map(drop)
    }

    pub(super) async fn cells(&self, id: &str) -> ExperimentStoreResult<BTreeMap<DisagreementCell, u64>> {
        let counts: Pairs<String, u64> = self.run(id, CELLS, Vec::new()).await?;
        let cell = |(name, count): (String, u64)| {
            let mut parts = name.split('\n').map(str::to_owned);
            let (arm, served, shadow) = (parts.next()?, parts.next()?, parts.next()?);
            Some((DisagreementCell { arm, served, shadow }, count))
        };
        Ok(counts.0.into_iter().filter_map(cell).collect())
    }

    /// Runs a script about all experiments.
    async fn run_all<T: FromReply>(&self, script: &'static str, args: Vec<Bytes>) -> ExperimentStoreResult<T> {
        run_script(&self.redis, script, format!("{}#experiments", self.prefix), args).await
    }

    /// Runs a script about one experiment.
    async fn run<T: FromReply>(&self, id: &str, script: &'static str, args: Vec<Bytes>) -> ExperimentStoreResult<T> {
        run_script(&self.redis, script, format!("{}#experiment:{id}", self.prefix), args).await
    }

    /// Runs a script for each page of items, with the arguments `head` and those that `write` adds for each item. Returns the sum
    /// of the numbers that the scripts give.
    async fn run_pages<T>(
        &self,
        id: &str,
        script: &'static str,
        head: &[Bytes],
        items: &[T],
        write: impl Fn(&mut Vec<Bytes>, &T),
    ) -> ExperimentStoreResult<u64> {
        let mut sum = 0;
        for page in items.chunks(PAGE) {
            let mut args = head.to_vec();
            page.iter().for_each(|item| write(&mut args, item));
            sum += self.run::<u64>(id, script, args).await?;
        }
        Ok(sum)
    }
}

/// Decodes the hash of a user; an empty one is of an unknown user.
fn user_sums(reply: ScriptReply) -> Result<Option<UserSums>, UnexpectedReply> {
    let fields: BTreeMap<String, String> = Pairs::from_reply(reply)?.0.into_iter().collect();
    let number = |name: &str| fields.get(name).map_or(Ok(0), |value| value.parse::<u64>()).map_err(|_| UnexpectedReply);
    let arm = |name: &str| usize::try_from(number(name)?).map_err(|_| UnexpectedReply);
    let (exposed_ms, guard_arm) = (number("at")?, arm("guard:arm")?);
    if !fields.contains_key("at") {
        return Ok(None);
    }
    let weights = fields.get("weights").map_or(Ok(Vec::new()), |weights| weights.split(',').map(str::parse).collect());
    let counts = fields.keys().filter_map(|field| Some((field, field.strip_prefix("n:")?)));
    Ok(Some(UserSums {
        arm: arm("arm")?,
        weights: weights.map_err(|_| UnexpectedReply)?,
        exposed_ms,
        counts: counts.map(|(field, name)| Ok((name.to_owned(), number(field)?))).collect::<Result<_, _>>()?,
        // The control has no guard.
        guard: (guard_arm > 0).then_some(UserGuard {
            arm: guard_arm,
            since_ms: number("guard:at")?,
            decisions: number("guard:decisions")?,
            failures: number("guard:failures")?,
        }),
    }))
}

/// Counts a unit whose results cannot be read; it is left out of all results.
fn count_unreadable() {
    metrics::counter!("pointwork_experiment_units_unreadable_total").increment(1);
}
