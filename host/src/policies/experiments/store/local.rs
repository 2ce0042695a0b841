//! Stores the experiments of a replica that is alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::PathBuf,
};

use parking_lot::Mutex;
use pointwork_core::experiments::{Experiment, Experiments as ExperimentList};

use super::{
    codec::{read_list, write_list},
    error::{ExperimentStoreError, ExperimentStoreResult},
    local_modules::{LocalModules, write_file},
    module_digests::ModuleDigests,
    units::{CELLS_MAX, ExposedUnits, UNITS_MAX, UnitRow, UserGuard, UserSums},
};
use crate::{
    driver::clock::unix_ms,
    policies::{
        PolicyModule,
        assignments::{DisagreementCell, UserDelta},
    },
};

const FILE: &str = "experiments.json";

struct LocalContent {
    /// `None` before the file was read.
    experiments: Option<ExperimentList>,
    modules: LocalModules,
    units: BTreeMap<String, LocalUnits>,
}

/// The units of one experiment.
#[derive(Default)]
struct LocalUnits {
    exposed: BTreeMap<String, u64>,
    finished: BTreeMap<String, UnitRow>,
    users: BTreeMap<String, UserSums>,
    cells: BTreeMap<DisagreementCell, u64>,
}

/// Keeps units in memory. Experiments and modules are also written to the folder, if there is one.
pub(crate) struct LocalStore {
    dir: Option<PathBuf>,
    /// Locked while a file is written, which happens on changes by operators, not on decisions.
    content: Mutex<LocalContent>,
}

impl LocalStore {
    pub(super) fn new(dir: Option<PathBuf>) -> Self {
        let modules = LocalModules::new(dir.clone());
        Self { dir, content: Mutex::new(LocalContent { experiments: None, modules, units: BTreeMap::new() }) }
    }

    pub(super) fn read(&self) -> ExperimentStoreResult<ExperimentList> {
        self.read_in(&mut self.content.lock().experiments).cloned()
    }

    fn read_in<'a>(
        &self,
        experiments: &'a mut Option<ExperimentList>,
    ) -> ExperimentStoreResult<&'a mut ExperimentList> {
        let list = match (experiments.take(), &self.dir) {
            (Some(list), _) => list,
            (None, None) => ExperimentList::default(),
            (None, Some(dir)) => match fs::read(dir.join(FILE)) {
                Ok(json) => read_list(&json)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => ExperimentList::default(),
                Err(error) => return Err(ExperimentStoreError::File(error.to_string())),
            },
        };
        Ok(experiments.insert(list))
    }

    pub(super) fn swap(&self, expected: u64, next: &ExperimentList) -> ExperimentStoreResult<bool> {
        let mut content = self.content.lock();
        let LocalContent { experiments, modules, units } = &mut *content;
        let current = self.read_in(experiments)?;
        if current.version != expected {
            return Ok(false);
        }
        for digest in ModuleDigests::of(next).needed {
            if modules.get(digest)?.is_none() {
                return Err(ExperimentStoreError::NoModule);
            }
        }
        if let Some(dir) = &self.dir {
            write_file(&dir.join(FILE), write_list(next).as_bytes())?;
        }
        let ids: BTreeSet<String> = next.list.iter().map(Experiment::id).collect();
        units.retain(|id, _| ids.contains(id));
        current.clone_from(next);
        modules.make_room(current, None);
        Ok(true)
    }

    pub(super) fn put_module(&self, digest: &str, module: PolicyModule) -> ExperimentStoreResult<()> {
        let mut content = self.content.lock();
        let LocalContent { experiments, modules, .. } = &mut *content;
        // Read first: which modules are needed must be known before any is removed.
        let experiments = self.read_in(experiments)?;
        modules.put(digest, module)?;
        modules.make_room(experiments, Some(digest));
        Ok(())
    }

    pub(super) fn module(&self, digest: &str) -> ExperimentStoreResult<Option<PolicyModule>> {
        self.content.lock().modules.get(digest)
    }

    pub(super) fn expose(&self, id: &str, exposed: &BTreeSet<String>) -> ExperimentStoreResult<u64> {
        self.with(id, |units| {
            let mut refused = 0;
            for unit in exposed {
                if units.exposed.len() < UNITS_MAX || units.exposed.contains_key(unit) {
                    units.exposed.insert(unit.clone(), unix_ms());
                } else {
                    refused += 1;
                }
            }
            refused
        })
    }

    pub(super) fn exposed(&self, id: &str, since_ms: u64) -> ExperimentStoreResult<ExposedUnits> {
        self.with(id, |units| {
            let since = units.exposed.iter().filter(|(_, at_ms)| **at_ms >= since_ms);
            ExposedUnits { now_ms: unix_ms(), units: since.map(|(unit, _)| unit.clone()).collect() }
        })
    }

    pub(super) fn finish(&self, id: &str, rows: &[(String, UnitRow)]) -> ExperimentStoreResult<()> {
        self.with(id, |units| {
            for (unit, row) in rows {
                units.finished.entry(unit.clone()).or_insert_with(|| row.clone());
            }
        })
    }

    pub(super) fn finished(&self, id: &str) -> ExperimentStoreResult<BTreeMap<String, UnitRow>> {
        self.with(id, |units| units.finished.clone())
    }

    pub(super) fn add_users(&self, id: &str, users: &BTreeMap<String, UserDelta>) -> ExperimentStoreResult<u64> {
        self.with(id, |units| {
            let mut refused = 0;
            for (user, delta) in users {
                if !units.users.contains_key(user) {
                    if units.users.len() >= UNITS_MAX {
                        refused += 1;
                        continue;
                    }
                    let (arm, weights, exposed_ms) = (delta.arm, delta.weights.clone(), delta.at_ms);
                    let sums = UserSums { arm, weights, exposed_ms, ..UserSums::default() };
                    units.users.insert(user.clone(), sums);
                    units.exposed.insert(user.clone(), unix_ms());
                }
                let Some(sums) = units.users.get_mut(user) else { continue };
                if covers(sums.arm, sums.exposed_ms, delta) {
                    for (name, count) in &delta.counts {
                        *sums.counts.entry((*name).to_owned()).or_default() += count;
                    }
                } else if add_guard(sums, delta) {
                    units.exposed.insert(user.clone(), unix_ms());
                }
            }
            refused
        })
    }

    pub(super) fn users(&self, id: &str, users: &[String]) -> ExperimentStoreResult<Vec<Option<UserSums>>> {
        self.with(id, |units| users.iter().map(|user| units.users.get(user).cloned()).collect())
    }

    pub(super) fn add_cells(&self, id: &str, cells: &[(DisagreementCell, u64)]) -> ExperimentStoreResult<()> {
        self.with(id, |units| {
            for (cell, count) in cells {
                if units.cells.len() < CELLS_MAX || units.cells.contains_key(cell) {
                    *units.cells.entry(cell.clone()).or_default() += count;
                }
            }
        })
    }

    pub(super) fn cells(&self, id: &str) -> ExperimentStoreResult<BTreeMap<DisagreementCell, u64>> {
        self.with(id, |units| units.cells.clone())
    }

    fn with<T>(&self, id: &str, step: impl FnOnce(&mut LocalUnits) -> T) -> ExperimentStoreResult<T> {
        Ok(step(self.content.lock().units.entry(id.to_owned()).or_default()))
    }
}

/// Whether what was counted belongs to this arm and to the horizon that began at `since_ms`.
fn covers(arm: usize, since_ms: u64, delta: &UserDelta) -> bool {
    arm == delta.arm && delta.at_ms < since_ms.saturating_add(delta.horizon_ms.into())
}

/// Adds what a treatment decided outside the observation. Returns whether that began now.
fn add_guard(sums: &mut UserSums, delta: &UserDelta) -> bool {
    let count = |name| delta.counts.get(name).copied().unwrap_or_default();
    if count("decisions") == 0 {
        return false;
    }
    let known = sums.guard.take().filter(|guard| covers(guard.arm, guard.since_ms, delta));
    if delta.arm == 0 {
        return false;
    }
    let is_new = known.is_none();
    let mut guard =
        known.unwrap_or_else(|| UserGuard { arm: delta.arm, since_ms: delta.at_ms, ..UserGuard::default() });
    guard.decisions += count("decisions");
    guard.failures += count("failures");
    sums.guard = Some(guard);
    is_new
}
