//! The experiments of a replica that is alone.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Mutex,
};

use pointwork_core::experiment::Experiments as Known;

use super::{CELLS_MAX, Row, StoreError, Stored, UNITS_MAX, UserSums, modules, parse, written};
use crate::{
    experiments::outbox::{Cell, UserDelta},
    lock::lock,
};

/// Modules that are kept in this process at most; more than all experiments have arms.
const MODULES_MAX: usize = 256;
const FILE: &str = "experiments.json";

#[derive(Default)]
struct Kept {
    known: Option<Known>,
    modules: BTreeMap<String, Stored>,
    of: BTreeMap<String, Units>,
}

#[derive(Default)]
struct Units {
    exposed: BTreeMap<String, u64>,
    over: BTreeMap<String, Row>,
    users: BTreeMap<String, UserSums>,
    cells: BTreeMap<Cell, u64>,
}

/// See the head. Locked while a file is written: that is an operator's change, not a decision.
pub(crate) struct Local {
    dir: Option<PathBuf>,
    kept: Mutex<Kept>,
}

impl Local {
    pub(super) fn new(dir: Option<PathBuf>) -> Self {
        Self { dir, kept: Mutex::default() }
    }

    pub(super) fn read(&self) -> Result<Known, StoreError> {
        let mut kept = lock(&self.kept);
        if let Some(known) = &kept.known {
            return Ok(known.clone());
        }
        let known = match &self.dir {
            None => Known::default(),
            Some(dir) => match fs::read(dir.join(FILE)) {
                Ok(text) => parse(&text)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => Known::default(),
                Err(error) => return Err(StoreError::File(error.to_string())),
            },
        };
        kept.known = Some(known.clone());
        Ok(known)
    }

    pub(super) fn swap(&self, expected: u64, next: &Known) -> Result<bool, StoreError> {
        let version = self.read()?.version;
        if version != expected {
            return Ok(false);
        }
        let (needed, others) = modules(next);
        for digest in needed {
            if self.module(digest)?.is_none() {
                return Err(StoreError::NoModule);
            }
        }
        let mut kept = lock(&self.kept);
        if let Some(dir) = &self.dir {
            write_whole(&dir.join(FILE), written(next).as_bytes())?;
            for digest in others {
                let [wasm, config] = files(dir, digest);
                drop((fs::remove_file(wasm), fs::remove_file(config)));
            }
        }
        let ids: Vec<String> = next.list.iter().map(pointwork_core::experiment::Experiment::id).collect();
        kept.of.retain(|id, _| ids.contains(id));
        kept.known = Some(next.clone());
        Ok(true)
    }

    pub(super) fn put_module(&self, digest: &str, module: Stored) -> Result<(), StoreError> {
        let mut kept = lock(&self.kept);
        if let Some(dir) = &self.dir {
            let [wasm, config] = files(dir, digest);
            write_whole(&wasm, &module.wasm)?;
            write_whole(&config, module.config.as_bytes())?;
        }
        while kept.modules.len() >= MODULES_MAX && kept.modules.pop_first().is_some() {}
        kept.modules.insert(digest.to_owned(), module);
        Ok(())
    }

    pub(super) fn module(&self, digest: &str) -> Result<Option<Stored>, StoreError> {
        if let Some(module) = lock(&self.kept).modules.get(digest) {
            return Ok(Some(module.clone()));
        }
        let Some(dir) = &self.dir else { return Ok(None) };
        let [wasm, config] = files(dir, digest);
        match (fs::read(wasm), fs::read_to_string(config)) {
            (Ok(wasm), Ok(config)) => Ok(Some(Stored { wasm: wasm.into(), config })),
            (Err(error), _) | (_, Err(error)) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::File(error.to_string()))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn expose(&self, id: &str, units: &BTreeMap<String, u64>) -> u64 {
        self.with(id, |of| {
            let mut refused = 0;
            for (unit, at_ms) in units {
                if of.exposed.len() < UNITS_MAX || of.exposed.contains_key(unit) {
                    of.exposed.entry(unit.clone()).or_insert(*at_ms);
                } else {
                    refused += 1;
                }
            }
            refused
        })
    }

    pub(super) fn exposed(&self, id: &str, since_ms: u64) -> Vec<String> {
        self.with(id, |of| {
            let since = of.exposed.iter().filter(|(_, at_ms)| **at_ms >= since_ms);
            since.map(|(unit, _)| unit.clone()).collect()
        })
    }

    pub(super) fn finish(&self, id: &str, rows: &[(String, Row)]) {
        self.with(id, |of| {
            for (unit, row) in rows {
                of.over.entry(unit.clone()).or_insert_with(|| row.clone());
            }
        });
    }

    pub(super) fn finished(&self, id: &str) -> BTreeMap<String, Row> {
        self.with(id, |of| of.over.clone())
    }

    pub(super) fn add_users(&self, id: &str, users: &BTreeMap<String, UserDelta>) -> u64 {
        self.with(id, |of| {
            let mut refused = 0;
            for (user, delta) in users {
                if !of.users.contains_key(user) {
                    if of.users.len() >= UNITS_MAX {
                        refused += 1;
                        continue;
                    }
                    let (arm, weights, exposed_ms) = (delta.arm, delta.weights.clone(), delta.at_ms);
                    of.users.insert(user.clone(), UserSums { arm, weights, exposed_ms, counts: BTreeMap::new() });
                    of.exposed.insert(user.clone(), delta.at_ms);
                }
                let Some(sums) = of.users.get_mut(user) else { continue };
                let ends_ms = sums.exposed_ms.saturating_add(delta.horizon_ms.into());
                if sums.arm == delta.arm && delta.at_ms < ends_ms {
                    for (name, count) in &delta.counts {
                        *sums.counts.entry((*name).to_owned()).or_default() += count;
                    }
                }
            }
            refused
        })
    }

    pub(super) fn users(&self, id: &str, units: &[String]) -> Vec<Option<UserSums>> {
        self.with(id, |of| units.iter().map(|unit| of.users.get(unit).cloned()).collect())
    }

    pub(super) fn add_cells(&self, id: &str, cells: &[(Cell, u64)]) {
        self.with(id, |of| {
            for (cell, count) in cells {
                if of.cells.len() < CELLS_MAX || of.cells.contains_key(cell) {
                    *of.cells.entry(cell.clone()).or_default() += count;
                }
            }
        });
    }

    pub(super) fn cells(&self, id: &str) -> BTreeMap<Cell, u64> {
        self.with(id, |of| of.cells.clone())
    }

    fn with<T>(&self, id: &str, step: impl FnOnce(&mut Units) -> T) -> T {
        step(lock(&self.kept).of.entry(id.to_owned()).or_default())
    }
}

fn files(dir: &Path, digest: &str) -> [PathBuf; 2] {
    ["wasm", "json"].map(|kind| dir.join(format!("experiment-{digest}.{kind}")))
}

/// Either the old bytes or the new ones are there, whenever the process ends.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let written = || {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        let new = path.with_extension("new");
        fs::write(&new, bytes)?;
        fs::rename(&new, path)
    };
    written().map_err(|error: io::Error| StoreError::File(format!("{}: {error}", path.display())))
}
