//! `GET /metrics`.

use std::sync::Arc;

use axum::extract::State;

use super::state::Admin;

/// The metrics in the text format of Prometheus.
pub(super) async fn metrics(State(admin): State<Arc<Admin>>) -> String {
    admin.devices.publish(&admin.io);
    admin.probes.replicas.publish();
    metrics::gauge!("pointwork_ready").set(f64::from(u8::from(admin.probes.missing().is_none())));
    admin.metrics.render(|page| {
        admin.policies.expose(page, |slot| admin.rollouts.is_refused(slot));
        admin.calls.expose(page);
    })
}
