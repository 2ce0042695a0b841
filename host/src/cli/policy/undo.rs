//! `pointwork policy undo`: returns every replica to the policy that served before.

use clap::Args;
use pointwork_policy::SlotName;
use serde_json::json;

use super::{
    convergence::{PendingChange, WaitArgs},
    slot_wording::directory_result,
};
use crate::cli::admin_client::AdminClient;

/// Where to undo.
#[derive(Args, Debug, Clone)]
pub(in crate::cli) struct UndoArgs {
    /// The slot
    #[arg(long)]
    slot: SlotName,
    #[command(flatten)]
    wait: WaitArgs,
}

impl UndoArgs {
    /// Undoes the last change and waits for the replicas. Returns which of them serve the previous policy.
    pub(super) fn run(&self, host: &AdminClient) -> anyhow::Result<String> {
        let slot = self.slot;
        let pushed = host.post(&format!("/v1/policies/{slot}/undo"), &json!({}))?;
        match directory_result(slot, &pushed) {
            Some(result) => Ok(result),
            None => PendingChange { slot, pushed, force: true }.wait(host, self.wait),
        }
    }
}
