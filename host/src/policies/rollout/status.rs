//! Shows the rollouts to the admin API.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use pointwork_core::rollout::{ReplicaReport, Uid};
use pointwork_policy::SlotName;
use serde::Serialize;
use serde_json::{Value, json};

use super::codec::{DocumentJson, Json};
use super::slot_state::ClusterView;
use super::state::{RolloutState, Rollouts};

/// One slot in the cluster, as this replica last read it: about a second ago at most, while Redis answers.
#[derive(Debug, Serialize)]
pub struct SlotRollout {
    /// Whether all live replicas serve what the pointer names, and no push is under way.
    pub converged: bool,
    /// The push under way: `{digest, pushed_ms, force}`.
    pub pending: Value,
    /// The last push that failed: `{digest, pushed_ms, replica, kind, message, at_ms}`.
    pub failed: Value,
    /// By uid: `{digest, generation, prepared, error, at_ms, live, this}`; only `live` and `this` for a replica that has not reported.
    pub replicas: BTreeMap<String, Value>,
    /// The shared document: `{version, current, since_ms, history, quarantined}`.
    pub pointer: Value,
    /// Whether Redis answered the last time, with a pointer that can be read.
    pub fresh: bool,
    /// Why the pointer cannot be read.
    pub trouble: Option<String>,
}

impl Rollouts {
    /// The status of a slot; `None` where the policy directory says what serves.
    #[must_use]
    pub fn status(&self, slot: SlotName) -> Option<SlotRollout> {
        self.0.as_ref().map(|state| state.slot_status(slot))
    }
}

impl RolloutState {
    fn slot_status(&self, slot: SlotName) -> SlotRollout {
        let status = self.policies.slot_status(slot);
        let of_slot = self.slot(slot).lock();
        let own = of_slot.peek_report(&status);
        let (trouble, cluster) = (of_slot.problem.clone(), of_slot.cluster.clone());
        drop(of_slot);
        let is_known = trouble.is_none() && cluster.is_some();
        let ClusterView { document, reports, mut live } = cluster.unwrap_or_default();
        live.insert(self.me.clone());
        let mut reports: BTreeMap<Uid, _> = reports.into_iter().map(|(uid, report)| (uid, Some(report))).collect();
        for uid in &live {
            reports.entry(uid.clone()).or_default();
        }
        // The own report is newer than the one that was written.
        let at_ms = reports.get(&self.me).and_then(Option::as_ref).map_or(0, |(at_ms, _)| *at_ms);
        reports.insert(self.me.clone(), Some((at_ms, own)));
        let serves_current = |uid: &Uid| {
            let report = reports.get(uid).and_then(Option::as_ref);
            report.is_some_and(|(_, report)| report.serving == document.current)
        };
        let converged = is_known && document.pending.is_none() && live.iter().all(serves_current);
        let replicas = reports
            .iter()
            .map(|(uid, report)| (uid.to_string(), replica(report.as_ref(), live.contains(uid), *uid == self.me)));
        let mut pointer = serde_json::to_value(DocumentJson::write(&document)).unwrap_or_default();
        let mut take = |name: &str| pointer.as_object_mut().and_then(|object| object.remove(name)).unwrap_or_default();
        SlotRollout {
            converged,
            pending: take("pending"),
            failed: take("failed"),
            replicas: replicas.collect(),
            pointer,
            fresh: is_known && !self.is_away.load(Ordering::Relaxed),
            trouble,
        }
    }
}

fn replica(report: Option<&(u64, ReplicaReport)>, is_live: bool, is_this: bool) -> Value {
    let Some((at_ms, report)) = report else { return json!({ "live": is_live, "this": is_this }) };
    let error = report
        .error
        .as_ref()
        .map(|error| json!({ "digest": &*error.digest, "kind": error.kind, "message": error.message }));
    json!({
        "digest": report.serving.as_deref(),
        "generation": report.generation,
        "prepared": report.prepared.as_deref(),
        "error": error,
        "at_ms": at_ms,
        "live": is_live,
        "this": is_this,
    })
}
