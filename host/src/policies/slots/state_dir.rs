//! `policy.state_dir`: what of the policies outlives the process, so that it starts on a good one when the newest is bad.
//!
//! A folder for each slot: `state.json` names the last good generations, the quarantine and what was undone, and each good
//! one has its module and its configuration beside it, `<digest>.wasm` and `<digest>.json`. Files are replaced by a rename;
//! one that cannot be read, or is not what its name says, is passed over with a warning.

use parking_lot::Mutex;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context;
use pointwork_policy::{Digest, KEPT_MAX, QUARANTINED_MAX, Quarantined, SlotName, SlotStatus, WASM_MAX_BYTES};
use serde::{Deserialize, Serialize};

use crate::policies::directory::file;

const STATE_BYTES_MAX: u64 = 256 * 1024;
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;
/// Digests that an operator went back from; beyond these the oldest is forgotten.
const UNDONE_MAX: usize = 8;

/// What is known of one slot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SlotState {
    /// Newest first; each has its files.
    pub(super) good: Vec<Digest>,
    /// Oldest first.
    pub(super) quarantined: Vec<Quarantined>,
    /// What is not to be gone back to, nor started on.
    pub(super) undone: Vec<Digest>,
}

/// The folder of one slot.
pub(super) struct StateDir {
    dir: PathBuf,
    slot: SlotName,
    /// Held while files are written: what is to be written is found out under it.
    state: Mutex<SlotState>,
}

impl StateDir {
    /// Reads what is there.
    ///
    /// # Errors
    /// When the folder can be neither found nor made.
    pub(super) fn open(dir: &Path, slot: SlotName) -> anyhow::Result<Self> {
        let dir = dir.join(slot.as_str());
        fs::create_dir_all(&dir).with_context(|| format!("policy.state_dir: cannot make {}", dir.display()))?;
        let mut state = read_state(&dir.join("state.json")).unwrap_or_else(|error| {
            tracing::warn!(%slot, %error, "policy.state_dir: what was kept is passed over");
            SlotState::default()
        });
        state.good.truncate(KEPT_MAX);
        state.quarantined.truncate(QUARANTINED_MAX);
        state.undone.truncate(UNDONE_MAX);
        Ok(Self { dir, slot, state: Mutex::new(state) })
    }

    pub(super) fn slot(&self) -> SlotName {
        self.slot
    }

    pub(super) fn state(&self) -> SlotState {
        self.state.lock().clone()
    }

    /// Module and configuration of a good generation; `None` when they are not what its digest says.
    pub(super) fn read(&self, digest: &Digest) -> Option<(Vec<u8>, String)> {
        let read = || {
            let module = file::read(&self.path(digest, "wasm"), WASM_MAX_BYTES as u64)?;
            let config = file::read(&self.path(digest, "json"), CONFIG_BYTES_MAX)?;
            let config = String::from_utf8(config).map_err(io::Error::other)?;
            if Digest::of_generation(&module, &config) != *digest {
                return Err(io::Error::other("it is not what its name says"));
            }
            Ok((module, config))
        };
        read().inspect_err(|error| tracing::warn!(slot = %self.slot, %digest, %error, "policy.state_dir: a kept policy is passed over")).ok()
    }

    /// A generation serves: its files are written, and it is the newest good one. `status` is asked once that is done.
    pub(super) fn keep(&self, digest: &Digest, module: &[u8], config: &str, status: impl FnOnce() -> SlotStatus) {
        let mut state = self.state.lock();
        let written = replace(&self.path(digest, "wasm"), module)
            .and_then(|()| replace(&self.path(digest, "json"), config.as_bytes()));
        self.warn(written);
        state.undone.clear();
        self.update(&mut state, &status(), &[]);
    }

    /// What serves has changed in another way, or the quarantine. `undone`: what the operator went back from since.
    pub(super) fn save(&self, undone: &[Digest], status: impl FnOnce() -> SlotStatus) {
        let mut state = self.state.lock();
        self.update(&mut state, &status(), undone);
    }

    fn update(&self, state: &mut SlotState, status: &SlotStatus, undone: &[Digest]) {
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

    /// Takes away what belongs to none of the good ones, a file that was never finished too.
    fn prune(&self, state: &SlotState) -> io::Result<()> {
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

impl SlotState {
    /// What is to be known with this status: what serves and those kept behind it, then what was good before.
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

fn read_state(path: &Path) -> io::Result<SlotState> {
    match file::read(path, STATE_BYTES_MAX) {
        Ok(json) => Ok(serde_json::from_slice(&json)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(SlotState::default()),
        Err(error) => Err(error),
    }
}

/// Whoever reads it sees the old content or the new one, after a crash too.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let written = fs::File::create(&new).and_then(|mut file| {
        io::Write::write_all(&mut file, content)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&new, path))
}
