//! The files of one slot, and when they are loaded.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    file::{self, Stamp},
    writers::Writers,
};
use pointwork_policy::SlotName;

use crate::{
    config::{PolicyConfig, PolicyJson},
    policies::Policies,
};

/// Larger than any sensible policy; the engine has its own, equal bound.
const MODULE_BYTES_MAX: u64 = 16 * 1024 * 1024;
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// The state of module and configuration file; an unreadable one counts as absent until it can be read.
type Stamps = (Option<Stamp>, Option<Stamp>);

/// A slot's module, its configuration, and what was seen of them.
pub(super) struct SlotFiles {
    slot: SlotName,
    module: PathBuf,
    config_file: PathBuf,
    /// Used when there is no configuration file.
    config: String,
    loaded: Option<Stamps>,
    seen: Option<(Stamps, Instant)>,
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
        let stamps = self.stamps();
        if self.loaded == Some(stamps) {
            self.seen = None;
            return None;
        }
        let since = match self.seen {
            Some((seen, since)) if seen == stamps => since,
            _ => now,
        };
        self.seen = Some((stamps, since));
        let settled = now.duration_since(since);
        if settled < quiet || writers.at(&self.module, now) || writers.at(&self.config_file, now) {
            return Some(quiet.saturating_sub(settled).max(Duration::from_millis(5)));
        }
        self.load(policies);
        None
    }

    /// Loads what is there now, or goes back to the native rule when the module was taken away.
    pub(super) fn load(&mut self, policies: &Policies) {
        let stamps = self.stamps();
        self.loaded = Some(stamps);
        self.seen = None;
        if stamps.0.is_none() {
            return policies.unload(self.slot);
        }
        let module = file::read(&self.module, MODULE_BYTES_MAX).map_err(|error| (&self.module, error));
        let read =
            module.and_then(|module| Ok((module, self.read_config(stamps.1).map_err(|e| (&self.config_file, e))?)));
        match read {
            Ok((module, config)) => policies.load(self.slot, &module, &config),
            Err((path, error)) => policies.note_unreadable(self.slot, &format!("{}: {error}", path.display())),
        }
    }

    fn read_config(&self, stamp: Option<Stamp>) -> std::io::Result<String> {
        if stamp.is_none() {
            return Ok(self.config.clone());
        }
        let content = file::read(&self.config_file, CONFIG_BYTES_MAX)?;
        Ok(serde_json::from_slice::<PolicyJson>(&content)?.to_json())
    }

    fn stamps(&self) -> Stamps {
        let stamp = |path| file::stamp(path).ok().flatten();
        (stamp(&self.module), stamp(&self.config_file))
    }
}
