//! Exposes the status of the slots as metrics.

use pointwork_policy::{SlotName, SlotStatus};

use super::state::Policies;
use crate::telemetry::MetricsPage;

/// How long guests take.
const COST: &str = "pointwork_policy_decision_seconds";

impl Policies {
    /// Copies the slots' own counters to the metrics, so that decisions do not pay for metrics. `is_refused`: whether this replica
    /// cannot load what the cluster says, see [`Rollouts::is_refused`](crate::policies::rollout::Rollouts::is_refused).
    pub(crate) fn expose(&self, page: &mut MetricsPage, is_refused: impl Fn(SlotName) -> bool) {
        let status = self.status();
        expose_info(page, &status);
        page.begin(COST);
        for (slot, costs) in SlotName::ALL.iter().zip(&self.costs) {
            page.histogram(COST, &[("slot", slot.as_str())], costs, 1e-9);
        }
        for status in status {
            let slot = status.slot.as_str();
            let by =
                |by: &'static str| metrics::counter!("pointwork_policy_decisions_total", "slot" => slot, "by" => by);
            by("wasm").absolute(status.calls - status.native.min(status.calls));
            by("native").absolute(status.native);
            for (kind, count) in status.failures {
                metrics::counter!("pointwork_policy_failures_total", "slot" => slot, "kind" => kind).absolute(count);
            }
            metrics::counter!("pointwork_policy_trips_total", "slot" => slot).absolute(status.trips);
            let has_failed = status.last_load_error.is_some() || is_refused(status.slot);
            let gauge = |name: &'static str, value: f64| metrics::gauge!(name, "slot" => slot).set(value);
            gauge("pointwork_policy_generation", status.generation as f64);
            gauge("pointwork_policy_loaded", f64::from(u8::from(status.source == "wasm")));
            gauge("pointwork_policy_load_failed", f64::from(u8::from(has_failed)));
            gauge("pointwork_policy_live_generations", status.live_generations as f64);
            gauge("pointwork_policy_quarantined", status.quarantined.len() as f64);
        }
    }
}

/// Exposes what serves each slot. Former generations are left out.
fn expose_info(page: &mut MetricsPage, status: &[SlotStatus]) {
    const INFO: &str = "pointwork_policy_info";
    page.begin(INFO);
    for SlotStatus { slot, info, digest, source, .. } in status {
        let digest = digest.map_or_else(|| "native".to_owned(), |digest| digest.short());
        let (name, version) = match info {
            Some(info) => (info.name.as_str(), info.version.as_str()),
            None => ("native", ""),
        };
        let what = [("slot", slot.as_str()), ("name", name), ("version", version)];
        let from = [("digest", digest.as_str()), ("source", *source)];
        page.sample(INFO, &[&what[..], &from[..]].concat(), 1.0);
    }
}
