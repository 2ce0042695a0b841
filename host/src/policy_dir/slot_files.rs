//! The files of one slot, and when they are loaded.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    file::{self, Seen},
    writers::Writers,
};
use pointwork_policy::{Digest, SlotName, WASM_MAX_BYTES};

use crate::{
    config::{PolicyConfig, PolicyJson},
    policies::Policies,
};

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
    seen: Option<(BothSeen, Instant)>,
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
                seen: None,
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
        self.load(policies);
        None
    }

    /// Loads what is there now, or goes back to the native rule when the module was taken away.
    pub(super) fn load(&mut self, policies: &Policies) {
        match self.read() {
            None => policies.unload(self.slot),
            Some(Ok((module, config))) => drop(policies.load(self.slot, &module, &config)),
            Some(Err(message)) => policies.note_unreadable(self.slot, &message),
        }
    }

    /// As [`SlotFiles::load`], but when what is there is bad, the last good one that a former process kept serves.
    pub(super) fn load_at_start(&mut self, policies: &Policies) {
        match self.read() {
            None => policies.unload(self.slot),
            Some(Ok((module, config))) => policies.load_at_start(self.slot, &module, &config),
            Some(Err(message)) => {
                policies.note_unreadable(self.slot, &message);
                policies.load_last_good(self.slot);
            }
        }
    }

    /// Loads what is there if it is this generation; an undo of another one holds.
    pub(super) fn reload(&mut self, policies: &Policies, digest: &Digest) {
        let loaded = self.loaded;
        match self.read() {
            Some(Ok((module, config))) if Digest::of_generation(&module, &config) == *digest => {
                policies.load(self.slot, &module, &config);
            }
            _ => self.loaded = loaded,
        }
    }

    /// Module and configuration, or why they cannot be read; `None` without a module. They count as loaded from now on.
    fn read(&mut self) -> Option<Result<(Vec<u8>, String), String>> {
        let files = self.see();
        self.loaded = Some(files);
        self.seen = None;
        if files.0 == Seen::Nothing {
            return None;
        }
        let words = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        let module = file::read(&self.module, WASM_MAX_BYTES as u64).map_err(|error| words(&self.module, error));
        Some(module.and_then(|module| {
            let config = self.read_config(files.1).map_err(|error| words(&self.config_file, error))?;
            Ok((module, config))
        }))
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
