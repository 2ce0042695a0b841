//! Waits until every replica has carried out a change.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use clap::Args;
use pointwork_policy::SlotName;
use serde_json::Value;

use super::slot_wording::{digest, push_failure, replica_status};
use crate::cli::{admin_client::AdminClient, json_fields::array};

/// How often the status is read while a command waits.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How long to wait for the replicas.
#[derive(Args, Debug, Clone, Copy)]
pub(super) struct WaitArgs {
    /// How long to wait until all have switched; 0: not at all
    // The default is longer than a push can take.
    #[arg(long, value_name = "MS", default_value_t = 60_000)]
    wait_ms: u64,
}

/// A change that a host has accepted.
pub(super) struct PendingChange {
    /// The slot.
    pub(super) slot: SlotName,
    /// The answer of the host: the digest, the version of the pointer and the time of the push.
    pub(super) pushed: Value,
    /// Whether the replicas that can switch do so although others cannot.
    pub(super) force: bool,
}

impl PendingChange {
    /// Waits until the change is complete. Returns which replicas serve it.
    ///
    /// # Errors
    /// When the change fails, another change replaces it, or it is not complete in time.
    pub(super) fn wait(&self, host: &AdminClient, WaitArgs { wait_ms }: WaitArgs) -> anyhow::Result<String> {
        let Self { slot, pushed, .. } = self;
        let deadline = Instant::now() + Duration::from_millis(wait_ms);
        if wait_ms == 0 {
            return Ok(format!("{slot}: {} is being pushed\n", digest(&pushed["digest"])));
        }
        loop {
            let answer = host.get("/v1/policies")?;
            let policy = array(&answer["policies"]).iter().find(|policy| policy["slot"] == slot.as_str());
            let policy = policy.context("the host does not tell of this slot")?;
            if let Some(result) = self.result(policy)? {
                return Ok(result);
            }
            if Instant::now() >= deadline {
                bail!("{slot}: not done after {wait_ms} ms: {}", lagging(policy, &pushed["digest"]));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// The result of the change by the status of its slot; `None` as long as it is not complete.
    fn result(&self, policy: &Value) -> anyhow::Result<Option<String>> {
        let (slot, wanted) = (self.slot, &self.pushed["digest"]);
        let pointer = &policy["pointer"];
        if pointer["version"].as_u64() < self.pushed["version"].as_u64() {
            return Ok(None);
        }
        let push = &self.pushed["pushed_ms"];
        if !push.is_null() && policy["pending"]["pushed_ms"] == *push {
            return Ok(None);
        }
        if !push.is_null() && policy["failed"]["pushed_ms"] == *push {
            bail!("{slot}: {}; what served before serves everywhere", push_failure(&policy["failed"]));
        }
        if pointer["current"] != *wanted {
            let is_quarantined = array(&pointer["quarantined"]).iter().any(|entry| entry["digest"] == *wanted);
            ensure!(!is_quarantined, "{slot}: {} failed while it served, and is in quarantine", digest(wanted));
            bail!("{slot}: another change came after it: {} is what serves", digest(&pointer["current"]));
        }
        let live = || policy["replicas"].as_object().into_iter().flatten().map(|(_, replica)| replica).filter(is_live);
        if policy["converged"] == true {
            return Ok(Some(format!("{slot}: {} serves on all {} replicas\n", digest(wanted), live().count())));
        }
        let has_tried = |replica: &Value| replica["digest"] == *wanted || replica["error"]["digest"] == *wanted;
        if !self.force || !policy["replicas"].is_object() || !live().all(has_tried) {
            return Ok(None);
        }
        let lagging = lagging(policy, wanted);
        Ok(Some(format!("{slot}: {} serves, but not everywhere: {lagging}\n", digest(wanted))))
    }
}

fn is_live(replica: &&Value) -> bool {
    replica["live"] == true
}

/// The live replicas that do not serve `wanted`, and why.
fn lagging(policy: &Value, wanted: &Value) -> String {
    let replicas = policy["replicas"].as_object().into_iter().flatten();
    let lagging = replicas.filter(|(_, replica)| is_live(replica) && replica["digest"] != *wanted);
    let lagging: Vec<_> = lagging.map(|(uid, replica)| format!("replica {uid}: {}", replica_status(replica))).collect();
    if lagging.is_empty() { "the replica that was asked does not know more".to_owned() } else { lagging.join("; ") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(force: bool) -> PendingChange {
        let pushed = json!({ "digest": "d", "version": 5, "pushed_ms": 70 });
        PendingChange { slot: SlotName::Settle, pushed, force }
    }

    fn policy(current: &str, version: u64, converged: bool, replicas: Value) -> Value {
        let pointer = json!({ "current": current, "version": version, "quarantined": [] });
        json!({ "pointer": pointer, "converged": converged, "pending": null, "failed": null, "replicas": replicas })
    }

    #[test]
    fn finds_the_result_of_a_push() {
        let one = json!({ "r": { "digest": "d", "generation": 1, "live": true, "error": null } });
        let before = change(false).result(&policy("c", 4, true, json!({}))).unwrap();
        assert_eq!(before, None, "this status is older than the push");
        let done = change(false).result(&policy("d", 6, true, one.clone())).unwrap().unwrap();
        assert_eq!(done, "settle: d serves on all 1 replicas\n");
        let mut pending = policy("c", 5, false, one);
        pending["pending"] = json!({ "digest": "d", "pushed_ms": 70 });
        assert_eq!(change(false).result(&pending).unwrap(), None);
    }

    #[test]
    fn reports_a_push_that_failed_or_was_replaced() {
        let mut failed = policy("c", 6, true, json!({}));
        failed["failed"] =
            json!({ "digest": "d", "pushed_ms": 70, "replica": "r2", "kind": "memory", "message": "too little" });
        let error = change(false).result(&failed).unwrap_err().to_string();
        assert!(error.contains("failed at replica r2: memory: too little"), "{error}");
        let replaced = change(false).result(&policy("e", 9, true, json!({}))).unwrap_err().to_string();
        assert!(replaced.contains("another change"), "{replaced}");
        let mut quarantined = policy("c", 9, true, json!({}));
        quarantined["pointer"]["quarantined"] = json!([{ "digest": "d", "why": "traps" }]);
        assert!(change(false).result(&quarantined).unwrap_err().to_string().contains("quarantine"));
    }

    #[test]
    fn completes_a_forced_push_when_all_have_tried_and_names_those_that_cannot() {
        let error = json!({ "digest": "d", "kind": "memory", "message": "too little" });
        let replicas = json!({
            "r1": { "digest": "d", "generation": 2, "live": true, "error": null },
            "r2": { "digest": "c", "generation": 1, "live": true, "error": error },
        });
        let policy = policy("d", 6, false, replicas);
        assert_eq!(change(false).result(&policy).unwrap(), None);
        let done = change(true).result(&policy).unwrap().unwrap();
        assert!(done.contains("not everywhere: replica r2: c (generation 1); cannot prepare d: memory"), "{done}");
    }
}
