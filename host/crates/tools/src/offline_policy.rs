//! Reads the file of a policy and its configuration.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use pointwork_policy::{Engine, LoadError, Module, PolicyJson, Slot, SlotLimits, SlotName, inspect};

/// A policy that is read from its file, with an engine to load it.
pub(crate) struct OfflinePolicy {
    engine: Engine,
    pub(crate) slot: SlotName,
    wasm: Vec<u8>,
    config: PolicyJson,
    limits: SlotLimits,
}

impl OfflinePolicy {
    /// Reads and inspects a policy. For `config` see [`read_config`]. `deadline_ms` is the deadline of a decision; `None` means
    /// the default of a slot.
    pub(crate) fn open(file: &Path, config: Option<&Path>, deadline_ms: Option<u64>) -> anyhow::Result<Self> {
        let name = || file.display().to_string();
        let wasm = fs::read(file).with_context(name)?;
        let engine = Engine::new()?;
        let slot = inspect(&engine, &wasm).with_context(name)?.slot;
        let mut limits = SlotLimits::default();
        limits.deadline_ms = deadline_ms.unwrap_or(limits.deadline_ms);
        Ok(Self { engine, slot, wasm, config: read_config(file, config)?, limits })
    }

    /// Loads the module with its own configuration.
    pub(crate) fn module<S: Slot>(&self) -> Result<Module<S>, LoadError> {
        self.module_with(&self.config)
    }

    /// Loads the module with another configuration.
    pub(crate) fn module_with<S: Slot>(&self, config: &PolicyJson) -> Result<Module<S>, LoadError> {
        Module::new(&self.engine, &self.wasm, &config.to_json(), self.limits)
    }
}

/// Reads the configuration of a policy. `given` is a JSON object, or the file that holds one; without it, the configuration is the
/// JSON file beside the policy, and `{}` if there is none.
pub(crate) fn read_config(policy: &Path, given: Option<&Path>) -> anyhow::Result<PolicyJson> {
    if let Some(text) = given.and_then(Path::to_str).filter(|text| text.trim_start().starts_with('{')) {
        return serde_json::from_str(text).context("--config");
    }
    let beside = Some(policy.with_extension("json")).filter(|beside| beside.exists());
    let Some(path) = given.map(PathBuf::from).or(beside) else {
        return Ok(PolicyJson::default());
    };
    let name = || path.display().to_string();
    serde_json::from_slice(&fs::read(&path).with_context(name)?).with_context(name)
}
