//! Finds the module file of each slot in the policy directory.

use std::{
    fs,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use pointwork_policy::SlotName;

use crate::config::PolicyConfig;

/// The module file of each slot, in the order of [`SlotName::ALL`]; empty without `policy.dir`.
pub(crate) struct ModulePaths(Vec<PathBuf>);

impl ModulePaths {
    pub(crate) fn of(settings: &PolicyConfig) -> Self {
        let slots = [&settings.target, &settings.grace, &settings.presence, &settings.settle];
        let paths = |dir: &PathBuf| slots.iter().map(|slot| slot.path(dir)).collect();
        Self(settings.dir.as_ref().map(paths).unwrap_or_default())
    }

    /// When the module or its configuration was last written, in milliseconds since the Unix epoch; `None` if neither exists.
    pub(crate) fn written_ms(&self, slot: SlotName) -> Option<u64> {
        let module = self.0.get(SlotName::ALL.iter().position(|known| *known == slot)?)?;
        let written = |path: &Path| {
            let since = fs::metadata(path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            u64::try_from(since.as_millis()).ok()
        };
        written(module).max(written(&module.with_extension("json")))
    }
}
