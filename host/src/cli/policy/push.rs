//! `pointwork policy push`: pushes a module to every replica of a cluster.

use std::{fs, path::PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use pointwork_policy::{Engine, PolicyJson, SlotName, WASM_MAX_BYTES, inspect};

use super::convergence::{PendingChange, WaitArgs};
use crate::{
    cli::admin_client::AdminClient,
    operate::admin::{CONFIG_HEADER, ascii},
};

/// What to push, and how.
#[derive(Args, Debug, Clone)]
pub(in crate::cli) struct PushArgs {
    /// The module
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The slot; by what the module exports when it is not said
    #[arg(long)]
    pub(in crate::cli) slot: Option<SlotName>,
    /// The module's configuration, also --config when it stands behind `push`; without it, that of the JSON file beside it
    #[arg(long, value_name = "JSON|@FILE")]
    pub(in crate::cli) policy_config: Option<String>,
    /// Have those replicas switch that can
    #[arg(long)]
    pub(in crate::cli) force: bool,
    #[command(flatten)]
    wait: WaitArgs,
}

impl PushArgs {
    /// Pushes the module and waits for the replicas. Returns which of them serve it.
    pub(super) fn run(&self, host: &AdminClient) -> anyhow::Result<String> {
        let file = || self.file.display().to_string();
        let wasm = fs::read(&self.file).with_context(file)?;
        let bytes = wasm.len();
        ensure!(bytes <= WASM_MAX_BYTES, "{} has {bytes} bytes, more than the {WASM_MAX_BYTES} of a policy", file());
        let slot = match self.slot {
            Some(slot) => slot,
            None => inspect(&Engine::new()?, &wasm).with_context(file)?.slot,
        };
        let path = format!("/v1/policies/{slot}/push?force={}", self.force);
        let pushed = host.post_raw(&path, (CONFIG_HEADER, &ascii(&self.config()?)), &wasm)?;
        PendingChange { slot, pushed, force: self.force }.wait(host, self.wait)
    }

    /// The configuration as JSON on one line.
    fn config(&self) -> anyhow::Result<String> {
        let beside = self.file.with_extension("json");
        let file = match self.policy_config.as_deref().map(|config| (config, config.strip_prefix('@'))) {
            Some((config, None)) => return to_json(config),
            Some((_, Some(path))) => PathBuf::from(path),
            None if beside.exists() => beside,
            None => return to_json("{}"),
        };
        to_json(&fs::read_to_string(&file).with_context(|| file.display().to_string())?)
    }
}

fn to_json(config: &str) -> anyhow::Result<String> {
    Ok(serde_json::from_str::<PolicyJson>(config).context("the configuration")?.to_json())
}
