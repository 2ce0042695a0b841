//! The files of one slot, and when they are loaded.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    LOOK_INTERVAL,
    file::{self, Seen},
    writers::Writers,
};
use pointwork_policy::{Digest, SlotName, WASM_MAX_BYTES};

use crate::{
    config::PolicyConfig,
    policies::{panic_message::caught, slots::Policies},
};
use pointwork_policy::PolicyJson;

const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// The state of module and configuration file.
type BothSeen = (Seen, Seen);

/// A slot's module, its configuration, and what was seen of them.
pub(super) struct SlotFiles {
    slot: SlotName,
    module: PathBuf,
    config_file: PathBuf,
    /// Used when there is no configuration file.
    config: String,
    loaded: Option<BothSeen>,
    /// What was read last.
    content: Option<Digest>,
    seen: Option<(BothSeen, Instant)>,
    /// What could not be read, why, and when it was tried.
    unread: Option<(BothSeen, String, Instant)>,
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
                seen: None,
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

    /// Loads what has changed, once it has been the same for `quiet` and nobody writes to it; otherwise gives when to
    /// look again. `None`: nothing to wait for.
    pub(super) fn look(
        &mut self,
        policies: &Policies,
        writers: &Writers,
        quiet: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let files = self.see();
        if self.loaded == Some(files) {
            self.seen = None;
            return None;
        }
        let since = match self.seen {
            Some((seen, since)) if seen == files => since,
            _ => now,
        };
        self.seen = Some((files, since));
        let settled = now.duration_since(since);
        if settled < quiet || writers.at(&self.module, now) || writers.at(&self.config_file, now) {
            return Some(quiet.saturating_sub(settled).max(Duration::from_millis(5)));
        }
        if let Some((unread, _, tried)) = &self.unread
            && *unread == files
            && now.duration_since(*tried) < LOOK_INTERVAL
        {
            return Some(LOOK_INTERVAL - now.duration_since(*tried));
        }
        self.load(policies, now);
        self.unread.is_some().then_some(LOOK_INTERVAL)
    }

    /// Loads what is there now, or goes back to the native rule when the module was taken away. The bytes that an operator went
    /// back from stay undone for as long as they are the same: a new stamp on them is nobody's wish.
    fn load(&mut self, policies: &Policies, now: Instant) {
        let (former, loaded) = (self.content, self.loaded);
        match self.read() {
            None => policies.unload(self.slot),
            Some(Ok(_)) if self.content == former && self.is_undone(policies) => {
                tracing::info!(slot = %self.slot, "the policy's files are others, but what is in them was undone and stays so");
            }
            Some(Ok((module, config))) => {
                self.guarded(policies, || _ = policies.load(self.slot, &module, &config));
            }
            Some(Err(message)) => {
                // What ails a file system may pass without a new stamp on the file.
                let tried = self.loaded.map(|files| (files, message.clone(), now));
                self.loaded = loaded;
                let was_told = self.unread.as_ref().is_some_and(|(_, told, _)| *told == message);
                self.unread = tried;
                if !was_told {
                    policies.note_unreadable(self.slot, &message);
                }
                return;
            }
        }
        self.unread = None;
    }

    /// As [`SlotFiles::load`], but when what is there is bad, the last good one that a former process kept serves.
    pub(super) fn load_at_start(&mut self, policies: &Policies) {
        match self.read() {
            None => policies.unload(self.slot),
            Some(Ok((module, config))) => {
                if !self.guarded(policies, || policies.load_at_start(self.slot, &module, &config)) {
                    self.guarded(policies, || _ = policies.load_last_good(self.slot));
                }
            }
            Some(Err(message)) => {
                policies.note_unreadable(self.slot, &message);
                policies.load_last_good(self.slot);
                self.unread = self.loaded.take().map(|files| (files, message, Instant::now()));
            }
        }
    }

    /// Loads what is there if it is this generation; an undo of another one holds.
    pub(super) fn reload(&mut self, policies: &Policies, digest: &Digest) {
        let loaded = self.loaded;
        match self.read() {
            Some(Ok((module, config))) if Digest::of_generation(&module, &config) == *digest => {
                self.guarded(policies, || _ = policies.load(self.slot, &module, &config));
            }
            _ => self.loaded = loaded,
        }
    }

    /// Loads, and whether that came to an end: one that panics is one of what cannot be read.
    fn guarded(&self, policies: &Policies, load: impl FnOnce()) -> bool {
        caught(load).inspect_err(|panic| policies.note_unreadable(self.slot, panic)).is_ok()
    }

    fn is_undone(&self, policies: &Policies) -> bool {
        self.content.is_some_and(|digest| policies.undone(self.slot).contains(&digest))
    }

    /// Module and configuration, or why they cannot be read; `None` without a module. They count as loaded from now on.
    fn read(&mut self) -> Option<Result<(Vec<u8>, String), String>> {
        let files = self.see();
        self.loaded = Some(files);
        self.seen = None;
        if files.0 == Seen::Nothing {
            self.content = None;
            return None;
        }
        let words = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        let module = file::read(&self.module, WASM_MAX_BYTES as u64).map_err(|error| words(&self.module, error));
        let both = module.and_then(|module| {
            let config = self.read_config(files.1).map_err(|error| words(&self.config_file, error))?;
            Ok((module, config))
        });
        if let Ok((module, config)) = &both {
            self.content = Some(Digest::of_generation(module, config));
        }
        Some(both)
    }

    fn read_config(&self, seen: Seen) -> std::io::Result<String> {
        if seen == Seen::Nothing {
            return Ok(self.config.clone());
        }
        let content = file::read(&self.config_file, CONFIG_BYTES_MAX)?;
        Ok(serde_json::from_slice::<PolicyJson>(&content)?.to_json())
    }

    fn see(&self) -> BothSeen {
        (file::look(&self.module), file::look(&self.config_file))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::RpcConfig;

    #[test]
    fn what_cannot_be_read_is_tried_again_and_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let settings = PolicyConfig::default();
        let policies = Policies::new(&settings, &RpcConfig::default()).unwrap();
        let mut files = SlotFiles::of(&settings, dir.path()).remove(0);
        let told = |policies: &Policies| policies.slot_status(SlotName::Target).last_load_error;
        let (start, writers, quiet) = (Instant::now(), Writers::default(), Duration::ZERO);
        // In its place is what no file can be: what it takes to be one is not to be seen in its stamp.
        fs::create_dir(files.module()).unwrap();
        assert_eq!(files.look(&policies, &writers, quiet, start), Some(LOOK_INTERVAL));
        assert_eq!(told(&policies).unwrap().kind, "unreadable");
        policies.unload(SlotName::Target);
        assert_eq!(files.look(&policies, &writers, quiet, start + LOOK_INTERVAL / 2), Some(LOOK_INTERVAL / 2));
        let tried = |files: &SlotFiles| files.unread.as_ref().map(|(_, _, tried)| *tried);
        assert_eq!(tried(&files), Some(start));
        assert_eq!(files.look(&policies, &writers, quiet, start + LOOK_INTERVAL), Some(LOOK_INTERVAL));
        assert_eq!(
            (tried(&files), told(&policies).is_none()),
            (Some(start + LOOK_INTERVAL), true),
            "tried again, and not told"
        );
        fs::remove_dir(files.module()).unwrap();
        fs::write(files.module(), b"no module").unwrap();
        assert_eq!(files.look(&policies, &writers, quiet, start + 2 * LOOK_INTERVAL), None);
        assert_eq!((tried(&files), told(&policies).unwrap().kind), (None, "malformed"), "it is read at last");
    }
}
