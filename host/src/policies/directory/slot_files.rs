//! Decides when the files of one slot are loaded, and loads them.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use pointwork_policy::{Digest, PolicyJson, SlotName, WASM_MAX_BYTES};

use super::writers::Writers;
use crate::{
    config::PolicyConfig,
    policies::{
        files::{FileState, file_state, read_whole},
        panic_message::catch_panic,
        slots::Policies,
    },
};

/// How often the files are checked even without an event: some file systems send none, and an event queue can overflow.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(2);
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// The states of the module file and of the configuration file.
type FileStates = (FileState, FileState);

/// A slot's module and configuration file, and their states when they were checked.
pub(super) struct SlotFiles {
    slot: SlotName,
    module: PathBuf,
    config_file: PathBuf,
    /// Used when there is no configuration file.
    config: String,
    loaded: Option<FileStates>,
    /// The generation that was read last.
    content: Option<Digest>,
    /// Files that differ from those that were loaded, and since when they have not changed.
    changed: Option<(FileStates, Instant)>,
    /// Files that could not be read, why, and when that was tried.
    unread: Option<(FileStates, String, Instant)>,
}

impl SlotFiles {
    /// The files of every slot.
    pub(super) fn of(settings: &PolicyConfig, dir: &Path) -> Vec<Self> {
        let slots = [
            (SlotName::Target, &settings.target),
            (SlotName::Grace, &settings.grace),
            (SlotName::Presence, &settings.presence),
            (SlotName::Settle, &settings.settle),
        ];
        let files = slots.map(|(slot, settings)| {
            let module = settings.path(dir);
            Self {
                slot,
                config_file: module.with_extension("json"),
                module,
                config: settings.config.to_json(),
                loaded: None,
                content: None,
                changed: None,
                unread: None,
            }
        });
        files.into()
    }

    pub(super) fn slot(&self) -> SlotName {
        self.slot
    }

    pub(super) fn module(&self) -> &Path {
        &self.module
    }

    /// Loads files that have changed, once they have stayed the same for `quiet` and nobody writes to them. Returns when to check
    /// again; `None` when there is nothing to wait for.
    pub(super) fn check(
        &mut self,
        policies: &Policies,
        writers: &Writers,
        quiet: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let files = self.states();
        if self.loaded == Some(files) {
            self.changed = None;
            return None;
        }
        let since = match self.changed {
            Some((changed, since)) if changed == files => since,
            _ => now,
        };
        self.changed = Some((files, since));
        let settled = now.duration_since(since);
        if settled < quiet || writers.is_writing(&self.module, now) || writers.is_writing(&self.config_file, now) {
            return Some(quiet.saturating_sub(settled).max(Duration::from_millis(5)));
        }
        if let Some((unread, _, tried)) = &self.unread
            && *unread == files
            && now.duration_since(*tried) < CHECK_INTERVAL
        {
            return Some(CHECK_INTERVAL - now.duration_since(*tried));
        }
        self.load(policies, now);
        self.unread.is_some().then_some(CHECK_INTERVAL)
    }

    /// Loads the files, or goes back to the native rule when the module was removed. A generation that an operator undid stays
    /// undone while the files' content is the same, even if the files were written again.
    fn load(&mut self, policies: &Policies, now: Instant) {
        let (former, loaded) = (self.content, self.loaded);
        match self.read() {
            None => policies.unload(self.slot),
            Some(Ok(_)) if self.content == former && self.is_undone(policies) => {
                tracing::info!(slot = %self.slot, "the policy's files are others, but what is in them was undone and stays so");
            }
            Some(Ok((module, config))) => {
                self.load_safely(policies, || _ = policies.load(self.slot, &module, &config));
            }
            Some(Err(message)) => {
                // A problem of a file system can end without a change of the file, so it is tried again.
                let tried = self.loaded.map(|files| (files, message.clone(), now));
                self.loaded = loaded;
                let is_known = self.unread.as_ref().is_some_and(|(_, known, _)| *known == message);
                self.unread = tried;
                if !is_known {
                    policies.note_unreadable(self.slot, &message);
                }
                return;
            }
        }
        self.unread = None;
    }

    /// As [`SlotFiles::load`], but if the files cannot be loaded, the last good generation that a former process kept serves.
    pub(super) fn load_at_start(&mut self, policies: &Policies) {
        match self.read() {
            None => policies.unload(self.slot),
            Some(Ok((module, config))) => {
                if !self.load_safely(policies, || policies.load_at_start(self.slot, &module, &config)) {
                    self.load_safely(policies, || _ = policies.load_last_good(self.slot));
                }
            }
            Some(Err(message)) => {
                policies.note_unreadable(self.slot, &message);
                policies.load_last_good(self.slot);
                self.unread = self.loaded.take().map(|files| (files, message, Instant::now()));
            }
        }
    }

    /// Loads the files if they are this generation.
    pub(super) fn reload(&mut self, policies: &Policies, digest: &Digest) {
        let loaded = self.loaded;
        match self.read() {
            Some(Ok((module, config))) if Digest::of_generation(&module, &config) == *digest => {
                self.load_safely(policies, || _ = policies.load(self.slot, &module, &config));
            }
            _ => self.loaded = loaded,
        }
    }

    /// Runs `load` and returns whether it did not panic. A panic is noted like files that cannot be read.
    fn load_safely(&self, policies: &Policies, load: impl FnOnce()) -> bool {
        catch_panic(load).inspect_err(|panic| policies.note_unreadable(self.slot, panic)).is_ok()
    }

    fn is_undone(&self, policies: &Policies) -> bool {
        self.content.is_some_and(|digest| policies.undone(self.slot).contains(&digest))
    }

    /// Reads module and configuration; `None` without a module. From now on they count as loaded.
    fn read(&mut self) -> Option<Result<(Vec<u8>, String), String>> {
        let files = self.states();
        self.loaded = Some(files);
        self.changed = None;
        if files.0 == FileState::Absent {
            self.content = None;
            return None;
        }
        let describe = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        let module = read_whole(&self.module, WASM_MAX_BYTES as u64).map_err(|error| describe(&self.module, error));
        let both = module.and_then(|module| {
            let config = self.read_config(files.1).map_err(|error| describe(&self.config_file, error))?;
            Ok((module, config))
        });
        if let Ok((module, config)) = &both {
            self.content = Some(Digest::of_generation(module, config));
        }
        Some(both)
    }

    fn read_config(&self, state: FileState) -> std::io::Result<String> {
        if state == FileState::Absent {
            return Ok(self.config.clone());
        }
        let content = read_whole(&self.config_file, CONFIG_BYTES_MAX)?;
        Ok(serde_json::from_slice::<PolicyJson>(&content)?.to_json())
    }

    fn states(&self) -> FileStates {
        (file_state(&self.module), file_state(&self.config_file))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::RpcConfig;

    #[test]
    fn unreadable_files_are_tried_again_and_reported_once() {
        let dir = tempfile::tempdir().unwrap();
        let settings = PolicyConfig::default();
        let policies = Policies::new(&settings, &RpcConfig::default()).unwrap();
        let mut files = SlotFiles::of(&settings, dir.path()).remove(0);
        let last_error = |policies: &Policies| policies.slot_status(SlotName::Target).last_load_error;
        let (start, writers, quiet) = (Instant::now(), Writers::default(), Duration::ZERO);
        // A folder is in the place of the file.
        fs::create_dir(files.module()).unwrap();
        assert_eq!(files.check(&policies, &writers, quiet, start), Some(CHECK_INTERVAL));
        assert_eq!(last_error(&policies).unwrap().kind, "unreadable");
        policies.unload(SlotName::Target);
        assert_eq!(files.check(&policies, &writers, quiet, start + CHECK_INTERVAL / 2), Some(CHECK_INTERVAL / 2));
        let tried = |files: &SlotFiles| files.unread.as_ref().map(|(_, _, tried)| *tried);
        assert_eq!(tried(&files), Some(start));
        assert_eq!(files.check(&policies, &writers, quiet, start + CHECK_INTERVAL), Some(CHECK_INTERVAL));
        assert_eq!(
            (tried(&files), last_error(&policies).is_none()),
            (Some(start + CHECK_INTERVAL), true),
            "tried again, and not reported again"
        );
        fs::remove_dir(files.module()).unwrap();
        fs::write(files.module(), b"no module").unwrap();
        assert_eq!(files.check(&policies, &writers, quiet, start + 2 * CHECK_INTERVAL), None);
        assert_eq!((tried(&files), last_error(&policies).unwrap().kind), (None, "malformed"), "it is read at last");
    }
}
