//! `pointwork exp create`: uploads the modules of the arms and creates the experiment.

use std::fs;

use anyhow::Context;
use clap::Args;
use pointwork_policy::SlotName;
use serde_json::{Map, Value, json};

use super::{guardrails::parse_guardrails, summary::summary, weights::parse_weights};
use crate::{cli::admin_client::AdminClient, operate::admin::ascii};

/// An experiment that is to be created.
#[derive(Args, Debug, Clone)]
pub(in crate::cli) struct CreateArgs {
    /// Its name: a-z, 0-9 and -
    name: String,
    /// The slot
    #[arg(long)]
    pub(in crate::cli) slot: SlotName,
    /// An arm, the control first: current (what serves), native, or a policy's file, with its configuration behind a comma
    #[arg(long = "arm", required = true, value_name = "NAME=FILE.wasm[,CONFIG.json]")]
    pub(in crate::cli) arms: Vec<String>,
    /// The arms' weights in percent, together 100; or in ten thousandths
    #[arg(long)]
    pub(in crate::cli) weights: String,
    /// What serves decides; the treatments are only asked too
    #[arg(long)]
    shadow_only: bool,
    /// How long after its first decision what becomes of a unit is counted, in milliseconds [default: 600000]
    #[arg(long, value_name = "MS")]
    horizon_ms: Option<u32>,
    /// Goes into each unit's bucket: experiments with one salt have the same units in their arms
    #[arg(long)]
    salt: Option<String>,
    /// A limit at which it ends by itself: stranded_ms_mean_max, failures_share_max, offline_ms_mean_max, units_min,
    /// decisions_min; `off` takes it away
    #[arg(long = "guardrail", value_name = "NAME=NUMBER")]
    guardrails: Vec<String>,
}

impl CreateArgs {
    /// Creates the experiment. Returns its summary.
    pub(super) fn run(&self, host: &AdminClient) -> anyhow::Result<String> {
        let mut arms = Vec::new();
        for arm in &self.arms {
            let (name, module) =
                arm.split_once('=').with_context(|| format!("--arm must be NAME=MODULE, not {arm}"))?;
            let module = match module {
                "current" | "native" => module.to_owned(),
                files => upload(host, self.slot, files).with_context(|| format!("arm {name}"))?,
            };
            arms.push(json!({ "name": name, "module": module }));
        }
        let mut experiment = json!({
            "name": self.name,
            "slot": self.slot.as_str(),
            "arms": arms,
            "weights": parse_weights(&self.weights)?,
            "shadow_only": self.shadow_only,
            "guardrails": parse_guardrails(&self.guardrails)?,
        });
        if let Some(horizon_ms) = self.horizon_ms {
            experiment["horizon_ms"] = horizon_ms.into();
        }
        if let Some(salt) = &self.salt {
            experiment["salt"] = salt.as_str().into();
        }
        Ok(summary(&host.post("/v1/experiments", &experiment)?))
    }
}

/// Uploads a module and returns its digest. `files` is the module's path, with the path of its configuration after a comma.
fn upload(host: &AdminClient, slot: SlotName, files: &str) -> anyhow::Result<String> {
    let read = |path: &str| fs::read(path).with_context(|| path.to_owned());
    let (wasm, config) = match files.rsplit_once(',').filter(|(_, config)| config.ends_with(".json")) {
        Some((wasm, config)) => (wasm, read(config)?),
        None => (files, b"{}".to_vec()),
    };
    let config: Map<String, Value> =
        serde_json::from_slice(&config).context("the configuration must be a JSON object")?;
    // A header holds only ASCII.
    let config = ascii(&Value::Object(config).to_string());
    let path = format!("/v1/experiments/modules?slot={slot}");
    let answer = host.post_raw(&path, ("x-policy-config", &config), &read(wasm)?)?;
    let digest = answer["digest"].as_str().context("the host did not say the module's digest")?;
    Ok(digest.to_owned())
}
