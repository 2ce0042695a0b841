//! A policy's file with its configuration, for the commands that look at one without a host.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use pointwork_policy::{Engine, LoadError, Module, Slot, SlotLimits, SlotName, inspect};

use pointwork_policy::PolicyJson;

/// A policy as an operator names it.
pub(crate) struct OfflinePolicy {
    pub(crate) engine: Engine,
    pub(crate) slot: SlotName,
    wasm: Vec<u8>,
    config: PolicyJson,
    deadline_ms: Option<u64>,
}

impl OfflinePolicy {
    /// Reads and checks it. `config`: a JSON object, or the file that holds one; without it, the file beside the policy, as in
    /// the policy directory. `deadline_ms`: of a decision; without it, what a slot has by default.
    pub(crate) fn open(file: &Path, config: Option<&Path>, deadline_ms: Option<u64>) -> anyhow::Result<Self> {
        let named = || file.display().to_string();
        let wasm = fs::read(file).with_context(named)?;
        let engine = Engine::new()?;
        let inspection = inspect(&engine, &wasm).with_context(named)?;
        Ok(Self { engine, slot: inspection.slot, wasm, config: config_of(file, config)?, deadline_ms })
    }

    /// Loaded with its own configuration.
    pub(crate) fn module<S: Slot>(&self) -> Result<Module<S>, LoadError> {
        self.module_with(&self.config)
    }

    /// Loaded with another one.
    pub(crate) fn module_with<S: Slot>(&self, config: &PolicyJson) -> Result<Module<S>, LoadError> {
        let mut limits = SlotLimits::default();
        limits.deadline_ms = self.deadline_ms.unwrap_or(limits.deadline_ms);
        Module::new(&self.engine, &self.wasm, &config.to_json(), limits)
    }
}

/// A policy's configuration: a JSON object, or the file that holds one; without it, the JSON file beside the policy.
pub(crate) fn config_of(file: &Path, given: Option<&Path>) -> anyhow::Result<PolicyJson> {
    if let Some(text) = given.and_then(Path::to_str).filter(|text| text.trim_start().starts_with('{')) {
        return serde_json::from_str(text).context("--config");
    }
    let beside = Some(file.with_extension("json")).filter(|beside| beside.exists());
    let Some(path) = given.map(PathBuf::from).or(beside) else {
        return Ok(PolicyJson::default());
    };
    let named = || path.display().to_string();
    serde_json::from_slice(&fs::read(&path).with_context(named)?).with_context(named)
}
