//! `pointwork policy status`: reports all that is known of each slot, on each replica.

use clap::Args;
use pointwork_policy::SlotName;
use serde_json::Value;

use super::slot_wording::{convergence, digest, push_failure, replica_status};
use crate::cli::{
    admin_client::AdminClient,
    json_fields::{array, text},
};

/// Which slots to report, and how.
#[derive(Args, Debug, Clone)]
pub(in crate::cli) struct StatusArgs {
    /// One slot only
    #[arg(long)]
    slot: Option<SlotName>,
    /// As the admin API gives it
    #[arg(long)]
    json: bool,
}

impl StatusArgs {
    /// The report.
    pub(super) fn run(&self, host: &AdminClient) -> anyhow::Result<String> {
        let answer = host.get("/v1/policies")?;
        if self.json {
            return Ok(format!("{answer:#}\n"));
        }
        let mut report = format!("policies come from the {}\n", text(&answer["source"]));
        let is_wanted = |policy: &&Value| self.slot.is_none_or(|slot| policy["slot"] == slot.as_str());
        array(&answer["policies"]).iter().filter(is_wanted).for_each(|policy| report.push_str(&describe(policy)));
        Ok(report)
    }
}

fn describe(policy: &Value) -> String {
    let mut lines = vec![format!("{}: {}", text(&policy["slot"]), convergence(policy))];
    let trouble = policy["trouble"].as_str();
    if policy["fresh"] == false {
        let why = if trouble.is_some() { "the pointer cannot be read" } else { "Redis does not answer" };
        lines.push(format!("  as it was seen last: {why} now"));
    }
    lines.extend(trouble.map(|trouble| format!("  trouble  {trouble}")));
    let pointer = &policy["pointer"];
    if pointer.is_object() {
        lines.push(format!("  current  {}", digest(&pointer["current"])));
        let previous: Vec<_> = array(&pointer["history"]).iter().map(digest).collect();
        if !previous.is_empty() {
            lines.push(format!("  undo to  {}", previous.join("\n           ")));
        }
    } else {
        lines.push(format!("  serving  {}", digest(&policy["digest"])));
    }
    if let Some(pending) = policy["pending"].as_object() {
        lines.push(format!("  pending  {}", digest(&pending["digest"])));
    }
    if policy["failed"].is_object() {
        lines.push(format!("  failed   {}", push_failure(&policy["failed"])));
    }
    let quarantined = if pointer.is_object() { &pointer["quarantined"] } else { &policy["quarantined"] };
    for entry in array(quarantined) {
        lines.push(format!("  quarantined {}: {}", digest(&entry["digest"]), text(&entry["why"])));
    }
    for (uid, replica) in policy["replicas"].as_object().into_iter().flatten() {
        lines.push(format!("  replica {uid}: {}", replica_status(replica)));
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reports_a_pointer_that_cannot_be_read() {
        let mut policy = json!({
            "slot": "settle",
            "pointer": { "current": "d", "version": 6, "quarantined": [] },
            "converged": false,
            "pending": null,
            "failed": null,
            "replicas": {},
        });
        assert_eq!(convergence(&policy), "not converged");
        (policy["trouble"], policy["fresh"]) = (json!("another kind of value"), json!(false));
        assert_eq!(convergence(&policy), "its pointer cannot be read");
        let report = describe(&policy);
        assert!(report.contains("trouble  another kind of value") && !report.contains("does not answer"), "{report}");
    }
}
