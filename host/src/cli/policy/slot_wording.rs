//! Describes what the admin API says of a slot's policy and of its replicas.

use pointwork_policy::SlotName;
use serde_json::Value;

use crate::cli::json_fields::text;

/// A digest; null stands for the native rule.
pub(super) fn digest(value: &Value) -> &str {
    value.as_str().unwrap_or("the native rule")
}

/// The first 12 digits of a digest; nothing for the native rule.
pub(super) fn short_digest(value: &Value) -> &str {
    let digest = text(value);
    digest.get(..12).unwrap_or(digest)
}

/// Whether all replicas serve the policy of the slot.
pub(super) fn convergence(policy: &Value) -> &'static str {
    if policy["trouble"].is_string() {
        return "its pointer cannot be read";
    }
    match (policy["converged"].as_bool(), policy["pending"].is_object()) {
        (Some(_), true) => "being pushed",
        (Some(true), _) => "converged",
        (Some(false), _) => "not converged",
        (None, _) => "",
    }
}

/// What a replica serves, and what it cannot prepare.
pub(super) fn replica_status(replica: &Value) -> String {
    if replica.get("generation").is_none() {
        return "has not reported".to_owned();
    }
    let mut status = format!("{} (generation {})", digest(&replica["digest"]), replica["generation"]);
    if replica["live"] == false {
        status.push_str(", not heard from");
    }
    let error = &replica["error"];
    if error.is_object() {
        let (kind, message) = (text(&error["kind"]), text(&error["message"]));
        status.push_str(&format!("; cannot prepare {}: {kind}: {message}", short_digest(&error["digest"])));
    }
    status
}

/// Why a push failed.
pub(super) fn push_failure(failed: &Value) -> String {
    let (kind, message) = (text(&failed["kind"]), text(&failed["message"]));
    let at = failed["replica"].as_str().map(|uid| format!(" at replica {uid}")).unwrap_or_default();
    format!("the push of {} failed{at}: {kind}: {message}", digest(&failed["digest"]))
}

/// The result of a change at a host that reads the policy directory, which answers with the slot's new status. `None` if the host
/// follows the cluster.
pub(super) fn directory_result(slot: SlotName, answer: &Value) -> Option<String> {
    answer.get("slot")?;
    Some(format!("{slot}: {} serves on this host, until its file changes\n", digest(&answer["digest"])))
}
