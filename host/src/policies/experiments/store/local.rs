//! The experiments of a replica that is alone.

use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use pointwork_core::experiment::Experiments as Known;

use super::{
    CELLS_MAX, Exposed, Modules, Row, StoreError, Stored, UNITS_MAX, UNNEEDED_MAX, UserGuard, UserSums, parse, written,
};
use crate::{
    driver::clock::unix_ms,
    policies::assignments::{Cell, UserDelta},
};

const FILE: &str = "experiments.json";
/// How the names of modules' files begin.
const FILES: &str = "experiment-";

#[derive(Default)]
struct Kept {
    known: Option<Known>,
    /// Without a folder: by digest, and in which order they were stored.
    modules: BTreeMap<String, (u64, Stored)>,
    stored: u64,
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
        self.read_in(&mut self.kept.lock()).cloned()
    }

    fn read_in<'a>(&self, kept: &'a mut Kept) -> Result<&'a Known, StoreError> {
        let known = match (kept.known.take(), &self.dir) {
            (Some(known), _) => known,
            (None, None) => Known::default(),
            (None, Some(dir)) => match fs::read(dir.join(FILE)) {
                Ok(text) => parse(&text)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => Known::default(),
                Err(error) => return Err(StoreError::File(error.to_string())),
            },
        };
        Ok(kept.known.insert(known))
    }

    pub(super) fn swap(&self, expected: u64, next: &Known) -> Result<bool, StoreError> {
        let mut kept = self.kept.lock();
        if self.read_in(&mut kept)?.version != expected {
            return Ok(false);
        }
        for digest in Modules::of(next).needed {
            if self.module_in(&kept, digest)?.is_none() {
                return Err(StoreError::NoModule);
            }
        }
        if let Some(dir) = &self.dir {
            write_whole(&dir.join(FILE), written(next).as_bytes())?;
        }
        let ids: Vec<String> = next.list.iter().map(pointwork_core::experiment::Experiment::id).collect();
        kept.of.retain(|id, _| ids.contains(id));
        kept.known = Some(next.clone());
        self.make_room(&mut kept, None);
        Ok(true)
    }

    pub(super) fn put_module(&self, digest: &str, module: Stored) -> Result<(), StoreError> {
        let mut kept = self.kept.lock();
        // What is needed is known before anything makes room.
        self.read_in(&mut kept)?;
        if let Some(dir) = &self.dir {
            let [wasm, config] = files(dir, digest);
            write_whole(&wasm, &module.wasm)?;
            write_whole(&config, module.config.as_bytes())?;
        } else {
            kept.stored += 1;
            let module = (kept.stored, module);
            kept.modules.insert(digest.to_owned(), module);
        }
        self.make_room(&mut kept, Some(digest));
        Ok(())
    }

    pub(super) fn module(&self, digest: &str) -> Result<Option<Stored>, StoreError> {
        self.module_in(&self.kept.lock(), digest)
    }

    fn module_in(&self, kept: &Kept, digest: &str) -> Result<Option<Stored>, StoreError> {
        let Some(dir) = &self.dir else { return Ok(kept.modules.get(digest).map(|(_, module)| module.clone())) };
        let [wasm, config] = files(dir, digest);
        match (fs::read(wasm), fs::read_to_string(config)) {
            (Ok(wasm), Ok(config)) => Ok(Some(Stored { wasm: wasm.into(), config })),
            (Err(error), _) | (_, Err(error)) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::File(error.to_string()))
            }
            _ => Ok(None),
        }
    }

    /// Of the modules that no experiment needs the oldest go, beyond so many; not `newest`: clocks of file systems are coarse.
    fn make_room(&self, kept: &mut Kept, newest: Option<&str>) {
        let Some(known) = &kept.known else { return };
        let Modules { needed, kept: promoted, .. } = Modules::of(known);
        let stays = |digest: &str| needed.contains(&digest) || promoted.contains(&digest) || newest == Some(digest);
        let Some(dir) = &self.dir else {
            let unneeded = kept.modules.iter().filter(|(digest, _)| !stays(digest));
            let unneeded = unneeded.map(|(digest, (stored, _))| (*stored, digest.clone())).collect();
            for digest in oldest(unneeded, newest) {
                kept.modules.remove(&digest);
            }
            return;
        };
        let unneeded = stored_files(dir).filter(|(_, digest)| !stays(digest)).collect();
        for digest in oldest(unneeded, newest) {
            // What cannot be removed is tried again the next time.
            drop(files(dir, &digest).map(fs::remove_file));
        }
    }

    pub(super) fn expose(&self, id: &str, units: &BTreeSet<String>) -> u64 {
        self.with(id, |of| {
            let mut refused = 0;
            for unit in units {
                if of.exposed.len() < UNITS_MAX || of.exposed.contains_key(unit) {
                    of.exposed.insert(unit.clone(), unix_ms());
                } else {
                    refused += 1;
                }
            }
            refused
        })
    }

    pub(super) fn exposed(&self, id: &str, since_ms: u64) -> Exposed {
        self.with(id, |of| {
            let since = of.exposed.iter().filter(|(_, at_ms)| **at_ms >= since_ms);
            Exposed { now_ms: unix_ms(), units: since.map(|(unit, _)| unit.clone()).collect() }
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
                    let sums = UserSums { arm, weights, exposed_ms, ..UserSums::default() };
                    of.users.insert(user.clone(), sums);
                    of.exposed.insert(user.clone(), unix_ms());
                }
                let Some(sums) = of.users.get_mut(user) else { continue };
                if covers(sums.arm, sums.exposed_ms, delta) {
                    for (name, count) in &delta.counts {
                        *sums.counts.entry((*name).to_owned()).or_default() += count;
                    }
                } else if guarded(sums, delta) {
                    of.exposed.insert(user.clone(), unix_ms());
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
        step(self.kept.lock().of.entry(id.to_owned()).or_default())
    }
}

/// Whether what became of a user falls into the horizon that began then, in that arm.
fn covers(arm: usize, since_ms: u64, delta: &UserDelta) -> bool {
    arm == delta.arm && delta.at_ms < since_ms.saturating_add(delta.horizon_ms.into())
}

/// Sums what a treatment decided beyond the observation; whether that began now.
fn guarded(sums: &mut UserSums, delta: &UserDelta) -> bool {
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

fn files(dir: &Path, digest: &str) -> [PathBuf; 2] {
    ["wasm", "json"].map(|kind| dir.join(format!("{FILES}{digest}.{kind}")))
}

/// The modules that lie in a folder: when each was stored, and its digest. What cannot be read is passed over.
fn stored_files(dir: &Path) -> impl Iterator<Item = (SystemTime, String)> {
    fs::read_dir(dir).into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let digest = name.strip_prefix(FILES)?.strip_suffix(".wasm")?.to_owned();
        Some((entry.metadata().ok()?.modified().ok()?, digest))
    })
}

/// The digests of the oldest beyond those that may stay.
fn oldest<T: Ord>(mut unneeded: Vec<(T, String)>, newest: Option<&str>) -> impl Iterator<Item = String> {
    unneeded.sort();
    let many = (unneeded.len() + usize::from(newest.is_some())).saturating_sub(UNNEEDED_MAX);
    unneeded.into_iter().take(many).map(|(_, digest)| digest)
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
