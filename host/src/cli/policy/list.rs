//! `pointwork policy list`: lists which policy serves each slot.

use super::slot_wording::{convergence, short_digest};
use crate::cli::{
    admin_client::AdminClient,
    json_fields::{array, text},
};

/// A line for each slot.
pub(super) fn list(host: &AdminClient) -> anyhow::Result<String> {
    let answer = host.get("/v1/policies")?;
    let mut report = format!("policies come from the {}\n", text(&answer["source"]));
    for policy in array(&answer["policies"]) {
        let name = match policy["source"].as_str() {
            Some("wasm") => format!("{} {}", text(&policy["name"]), text(&policy["version"])),
            _ => "native rule".to_owned(),
        };
        let digest = short_digest(&policy["digest"]);
        report.push_str(&format!("{:9} {name:32} {digest:12} {}\n", text(&policy["slot"]), convergence(policy)));
    }
    Ok(report)
}
