//! `pointwork policy retry`: takes a digest out of quarantine and pushes it again.

use clap::Args;
use pointwork_policy::SlotName;
use serde_json::json;

use super::{
    convergence::{PendingChange, WaitArgs},
    slot_wording::{digest, directory_result},
};
use crate::cli::admin_client::AdminClient;

/// What to retry, and how.
#[derive(Args, Debug, Clone)]
pub(in crate::cli) struct RetryArgs {
    /// The slot
    #[arg(long)]
    slot: SlotName,
    /// The digest, or its first 12 digits or more
    digest: String,
    /// Have those replicas switch that can
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    wait: WaitArgs,
}

impl RetryArgs {
    /// Pushes the digest again and waits for the replicas. Returns which of them serve it.
    pub(super) fn run(&self, host: &AdminClient) -> anyhow::Result<String> {
        let Self { slot, force, .. } = *self;
        let body = json!({ "digest": self.digest, "force": force });
        let pushed = host.post(&format!("/v1/policies/{slot}/retry"), &body)?;
        if let Some(result) = directory_result(slot, &pushed) {
            return Ok(result);
        }
        if pushed["arms"] == true {
            return Ok(format!("{slot}: arms of {} are asked again at this host\n", digest(&pushed["digest"])));
        }
        if pushed["pushed_ms"].is_null() {
            return Ok(format!("{slot}: {} may be pushed again; its module is not stored any more\n", self.digest));
        }
        PendingChange { slot, pushed, force }.wait(host, self.wait)
    }
}
