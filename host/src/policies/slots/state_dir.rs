//! Keeps the state of a slot in `policy.state_dir`, so that a process can start on a good policy when the newest one is bad.
//!
//! Each slot has a folder. `state.json` names the last good generations, the quarantine and the undone generations. Each good
//! generation has its module and its configuration beside it, `<digest>.wasm` and `<digest>.json`. Files are replaced by a rename.
//! A file that cannot be read, or whose content does not match its name, is skipped with a warning.

use parking_lot::Mutex;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context;
use pointwork_policy::{Digest, KEPT_MAX, QUARANTINED_MAX, Quarantined, SlotName, SlotStatus, WASM_MAX_BYTES};
use serde::{Deserialize, Serialize};

use crate::policies::files::{read_whole, replace};

const STATE_BYTES_MAX: u64 = 256 * 1024;
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;
/// The most undone digests that are kept; the oldest ones are forgotten first.
const UNDONE_MAX: usize = 8;

/// The content of `state.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedSlot {
    /// Newest first; each has its files.
    pub(super) good: Vec<Digest>,
    /// Oldest first.
    pub(super) quarantined: Vec<Quarantined>,
    /// Generations that must not be gone back to, nor started on.
    pub(super) undone: Vec<Digest>,
}

/// The folder of one slot.
pub(super) struct SlotStateDir {
    dir: PathBuf,
    slot: SlotName,
    /// Locked while files are written, so that the status that is written is not older than the one before it.
    state: Mutex<SavedSlot>,
}

impl SlotStateDir {
    /// Reads the folder.
    ///
    /// # Errors
    /// When the folder does not exist and cannot be made.
    pub(super) fn open(dir: &Path, slot: SlotName) -> anyhow::Result<Self> {
        let dir = dir.join(slot.as_str());
        fs::create_dir_all(&dir).with_context(|| format!("policy.state_dir: cannot make {}", dir.display()))?;
        let mut state = read_state(&dir.join("state.json")).unwrap_or_else(|error| {
            tracing::warn!(%slot, %error, "policy.state_dir: what was kept is passed over");
            SavedSlot::default()
        });
        state.good.truncate(KEPT_MAX);
        state.quarantined.truncate(QUARANTINED_MAX);
        state.undone.truncate(UNDONE_MAX);
        Ok(Self { dir, slot, state: Mutex::new(state) })
    }

    pub(super) fn slot(&self) -> SlotName {
        self.slot
    }

    pub(super) fn state(&self) -> SavedSlot {
        self.state.lock().clone()
    }

    /// Reads module and configuration of a good generation; `None` when they do not have this digest.
    pub(super) fn read(&self, digest: &Digest) -> Option<(Vec<u8>, String)> {
        let read = || {
            let module = read_whole(&self.path(digest, "wasm"), WASM_MAX_BYTES as u64)?;
            let config = read_whole(&self.path(digest, "json"), CONFIG_BYTES_MAX)?;
            let config = String::from_utf8(config).map_err(io::Error::other)?;
            if Digest::of_generation(&module, &config) != *digest {
                return Err(io::Error::other("it is not what its name says"));
            }
            Ok((module, config))
        };
        read().inspect_err(|error| tracing::warn!(slot = %self.slot, %digest, %error, "policy.state_dir: a kept policy is passed over")).ok()
    }

    /// Writes the files of a generation that serves, and makes it the newest good one. `status` is called after the files are
    /// written.
    pub(super) fn keep(&self, digest: &Digest, module: &[u8], config: &str, status: impl FnOnce() -> SlotStatus) {
        let mut state = self.state.lock();
        let written = replace(&self.path(digest, "wasm"), module)
            .and_then(|()| replace(&self.path(digest, "json"), config.as_bytes()));
        self.warn(written);
        state.undone.clear();
        self.update(&mut state, &status(), &[]);
    }

    /// Writes the state after any other change. `undone`: the generations that the operator undid since.
    pub(super) fn save(&self, undone: &[Digest], status: impl FnOnce() -> SlotStatus) {
        let mut state = self.state.lock();
        self.update(&mut state, &status(), undone);
    }

    fn update(&self, state: &mut SavedSlot, status: &SlotStatus, undone: &[Digest]) {
        let next = state.after(status, undone, |digest| {
            ["wasm", "json"].into_iter().all(|extension| self.path(digest, extension).is_file())
        });
        if next == *state && self.dir.join("state.json").is_file() {
            return;
        }
        *state = next;
        let written = serde_json::to_vec_pretty(&state)
            .map_err(io::Error::other)
            .and_then(|json| replace(&self.dir.join("state.json"), &json));
        self.warn(written);
        self.warn(self.prune(state));
    }

    /// Removes files that belong to none of the good generations, also files that were never finished.
    fn prune(&self, state: &SavedSlot) -> io::Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let is_good = stem.parse().is_ok_and(|digest| state.good.contains(&digest));
            let is_ours =
                path.extension().is_some_and(|extension| ["wasm", "json", "new"].iter().any(|ours| extension == *ours));
            if is_ours && stem != "state" && !is_good {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    fn path(&self, digest: &Digest, extension: &str) -> PathBuf {
        self.dir.join(format!("{digest}.{extension}"))
    }

    fn warn(&self, written: io::Result<()>) {
        if let Err(error) = written {
            tracing::warn!(slot = %self.slot, %error, "policy.state_dir: cannot be written; a restart may find an older state");
        }
    }
}

impl SavedSlot {
    /// The state that follows from a status: first the generation that serves and those kept behind it, then those that were good
    /// before.
    fn after(&self, status: &SlotStatus, undone: &[Digest], has_files: impl Fn(&Digest) -> bool) -> Self {
        let mut all_undone = self.undone.clone();
        all_undone.extend(undone.iter().filter(|digest| !self.undone.contains(digest)));
        all_undone.retain(|digest| status.digest != Some(*digest));
        let surplus = all_undone.len().saturating_sub(UNDONE_MAX);
        all_undone.drain(..surplus);
        let kept = status.kept.iter().filter(|kept| !kept.tripped).map(|kept| kept.digest);
        let mut good = Vec::new();
        for digest in status.digest.into_iter().chain(kept).chain(self.good.iter().copied()) {
            let is_bad = all_undone.contains(&digest)
                || status.quarantined.iter().any(|quarantined| quarantined.digest == digest);
            if !is_bad && !good.contains(&digest) && has_files(&digest) {
                good.push(digest);
            }
        }
        good.truncate(KEPT_MAX);
        Self { good, quarantined: status.quarantined.clone(), undone: all_undone }
    }
}

fn read_state(path: &Path) -> io::Result<SavedSlot> {
    match read_whole(path, STATE_BYTES_MAX) {
        Ok(json) => Ok(serde_json::from_slice(&json)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(SavedSlot::default()),
        Err(error) => Err(error),
    }
}
