//! `pointwork policy pull`: fetches a module and its configuration from a running host.

use std::{fs, path::PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use pointwork_policy::{Digest, PolicyJson, SlotName, WASM_MAX_BYTES};

use crate::{
    cli::admin_client::{AdminClient, percent_encoded},
    operate::admin::{CONFIG_HEADER, DIGEST_HEADER},
};

/// What to fetch, and where to write it.
#[derive(Args, Debug, Clone)]
pub(in crate::cli) struct PullArgs {
    /// The slot
    #[arg(long)]
    slot: SlotName,
    /// One that served before, or is in quarantine; without it, what serves
    #[arg(long)]
    digest: Option<String>,
    /// Where to write the module
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

impl PullArgs {
    /// Writes the two files. Returns their names and the digest.
    pub(super) fn run(&self, host: &AdminClient) -> anyhow::Result<String> {
        let Self { slot, digest, out } = self;
        let query = digest.as_deref().map(|digest| format!("?digest={}", percent_encoded(digest))).unwrap_or_default();
        let answer = host.get_raw(&format!("/v1/policies/{slot}/module{query}"), WASM_MAX_BYTES as u64)?;
        let header = |name: &str| answer.headers().get(name)?.to_str().ok();
        let config: PolicyJson = serde_json::from_str(header(CONFIG_HEADER).unwrap_or("{}"))?;
        let found = Digest::of_generation(answer.body(), &config.to_json()).to_string();
        let expected = header(DIGEST_HEADER).unwrap_or_default();
        ensure!(found == expected, "what came is {found}, not {expected}");
        let beside = out.with_extension("json");
        ensure!(beside != *out, "--out must not end in .json: the configuration is written there");
        fs::write(out, answer.body()).with_context(|| out.display().to_string())?;
        fs::write(&beside, format!("{}\n", config.to_json())).with_context(|| beside.display().to_string())?;
        let bytes = answer.body().len();
        Ok(format!("{}: {bytes} bytes, {found}\n{}: its configuration\n", out.display(), beside.display()))
    }
}
