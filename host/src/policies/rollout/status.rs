//! What the admin API shows of rollouts.

use std::collections::BTreeMap;

use pointwork_core::rollout::{Document, Report};
use pointwork_policy::SlotName;
use serde::Serialize;
use serde_json::{Value, json};

use super::codec::DocumentJson;
use super::{Rollouts, Shared};

/// One slot in the cluster, as this replica saw it last: at most about a second ago, while Redis is there.
#[derive(Debug, Serialize)]
pub struct SlotRollout {
    /// Whether all that live serve what the pointer names, and nothing is under way.
    pub converged: bool,
    /// The push under way: `{digest, pushed_ms, force}`.
    pub pending: Value,
    /// The last push that failed: `{digest, pushed_ms, replica, kind, message, at_ms}`.
    pub failed: Value,
    /// By uid: `{digest, generation, prepared, error, at_ms, live, this}`; nothing but `live` for one that has not reported.
    pub replicas: BTreeMap<String, Value>,
    /// What is shared: `{version, current, since_ms, history, quarantined}`.
    pub pointer: Value,
    /// Whether Redis answered when it was asked last, with a pointer that can be read.
    pub fresh: bool,
    /// Why the pointer cannot be read.
    pub trouble: Option<String>,
}

impl Rollouts {
    /// What is shown of a slot; `None` where the policy directory rules.
    #[must_use]
    pub fn status(&self, slot: SlotName) -> Option<SlotRollout> {
        self.0.as_ref().map(|shared| shared.slot_status(slot))
    }
}

impl Shared {
    fn slot_status(&self, slot: SlotName) -> SlotRollout {
        let statuses = self.policies.status();
        let place = self.place(slot).lock();
        let own = statuses.iter().find(|status| status.slot == slot).map(|status| place.shown_report(status));
        let trouble = place.trouble.clone();
        let shown = place.shown.clone();
        drop(place);
        let document = shown.as_ref().map(|shown| shown.document.clone()).unwrap_or_default();
        let mut reports = BTreeMap::new();
        if let Some(shown) = &shown {
            for uid in &shown.live {
                reports.insert(uid.clone(), (None, true));
            }
            for (uid, (at_ms, report)) in &shown.reports {
                reports.insert(uid.clone(), (Some((*at_ms, report.clone())), shown.live.contains(uid)));
            }
        }
        if let Some(own) = own {
            // It knows better than what it reported.
            let at_ms = shown.as_ref().and_then(|shown| shown.reports.get(&self.me)).map_or(0, |(at_ms, _)| *at_ms);
            reports.insert(self.me.clone(), (Some((at_ms, own)), true));
        }
        let serves = |report: &Option<(u64, Report)>| {
            report.as_ref().is_some_and(|(_, report)| report.serving == document.current)
        };
        let converged = trouble.is_none()
            && shown.is_some()
            && document.pending.is_none()
            && reports.values().all(|(report, is_live)| !is_live || serves(report));
        let replicas = reports
            .iter()
            .map(|(uid, (report, is_live))| (uid.to_string(), replica(report.as_ref(), *is_live, *uid == self.me)));
        let DocumentParts { pending, failed, pointer } = parts(&document);
        let fresh = trouble.is_none() && shown.is_some() && !self.is_away.load(std::sync::atomic::Ordering::Relaxed);
        SlotRollout { converged, pending, failed, replicas: replicas.collect(), pointer, fresh, trouble }
    }
}

fn replica(report: Option<&(u64, Report)>, is_live: bool, is_this: bool) -> Value {
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

struct DocumentParts {
    pending: Value,
    failed: Value,
    pointer: Value,
}

fn parts(document: &Document) -> DocumentParts {
    let mut pointer = serde_json::to_value(DocumentJson::from(document)).unwrap_or_default();
    let mut take = |name: &str| pointer.as_object_mut().and_then(|object| object.remove(name)).unwrap_or_default();
    let (pending, failed) = (take("pending"), take("failed"));
    DocumentParts { pending, failed, pointer }
}
