//! Stores the modules of experiments without Redis: in files, or in memory.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use pointwork_core::experiments::Experiments as ExperimentList;

use super::{
    error::{ExperimentStoreError, ExperimentStoreResult},
    module_digests::{ModuleDigests, UNNEEDED_MAX},
};
use crate::policies::{PolicyModule, files::replace};

/// How the names of modules' files begin.
const FILE_PREFIX: &str = "experiment-";

pub(super) struct LocalModules {
    dir: Option<PathBuf>,
    /// Used without a folder. By digest: the module, and when it was stored, as a count.
    in_memory: BTreeMap<String, (u64, PolicyModule)>,
    stored: u64,
}

impl LocalModules {
    pub(super) fn new(dir: Option<PathBuf>) -> Self {
        Self { dir, in_memory: BTreeMap::new(), stored: 0 }
    }

    pub(super) fn put(&mut self, digest: &str, module: PolicyModule) -> ExperimentStoreResult<()> {
        let Some(dir) = &self.dir else {
            self.stored += 1;
            self.in_memory.insert(digest.to_owned(), (self.stored, module));
            return Ok(());
        };
        let [wasm, config] = paths(dir, digest);
        write_file(&wasm, &module.wasm)?;
        write_file(&config, module.config.as_bytes())
    }

    pub(super) fn get(&self, digest: &str) -> ExperimentStoreResult<Option<PolicyModule>> {
        let Some(dir) = &self.dir else { return Ok(self.in_memory.get(digest).map(|(_, module)| module.clone())) };
        let [wasm, config] = paths(dir, digest);
        match (fs::read(wasm), fs::read_to_string(config)) {
            (Ok(wasm), Ok(config)) => Ok(Some(PolicyModule { wasm: wasm.into(), config })),
            (Err(error), _) | (_, Err(error)) if error.kind() != io::ErrorKind::NotFound => {
                Err(ExperimentStoreError::File(error.to_string()))
            }
            _ => Ok(None),
        }
    }

    /// Removes the oldest modules that no experiment needs. `newest` stays, because the clocks of file systems are coarse.
    pub(super) fn make_room(&mut self, experiments: &ExperimentList, newest: Option<&str>) {
        let ModuleDigests { needed, promoted, .. } = ModuleDigests::of(experiments);
        let stays = |digest: &str| needed.contains(&digest) || promoted.contains(&digest) || newest == Some(digest);
        if let Some(dir) = &self.dir {
            for digest in oldest(stored_files(dir).filter(|(_, digest)| !stays(digest)), newest) {
                // A file that cannot be removed is tried again the next time.
                drop(paths(dir, &digest).map(fs::remove_file));
            }
        } else {
            let unneeded = self.in_memory.iter().filter(|(digest, _)| !stays(digest));
            for digest in oldest(unneeded.map(|(digest, (stored, _))| (*stored, digest.clone())), newest) {
                self.in_memory.remove(&digest);
            }
        }
    }
}

/// Replaces a file, and makes its folder if there is none.
pub(super) fn write_file(path: &Path, content: &[u8]) -> ExperimentStoreResult<()> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    let written = folder.and_then(|()| replace(path, content));
    written.map_err(|error| ExperimentStoreError::File(format!("{}: {error}", path.display())))
}

fn paths(dir: &Path, digest: &str) -> [PathBuf; 2] {
    ["wasm", "json"].map(|extension| dir.join(format!("{FILE_PREFIX}{digest}.{extension}")))
}

/// When each module in a folder was stored, and its digest. Files that cannot be read are skipped.
fn stored_files(dir: &Path) -> impl Iterator<Item = (SystemTime, String)> {
    fs::read_dir(dir).into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let digest = name.strip_prefix(FILE_PREFIX)?.strip_suffix(".wasm")?.to_owned();
        Some((entry.metadata().ok()?.modified().ok()?, digest))
    })
}

/// The digests of the oldest modules beyond [`UNNEEDED_MAX`].
fn oldest<T: Ord>(unneeded: impl Iterator<Item = (T, String)>, newest: Option<&str>) -> Vec<String> {
    let mut unneeded: Vec<_> = unneeded.collect();
    unneeded.sort();
    let surplus = (unneeded.len() + usize::from(newest.is_some())).saturating_sub(UNNEEDED_MAX);
    unneeded.into_iter().take(surplus).map(|(_, digest)| digest).collect()
}
