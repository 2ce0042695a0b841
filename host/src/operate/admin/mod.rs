//! The admin API: policies, metrics, and broadcasts from the application's backend.

mod access;
mod devices;
mod emit;
mod experiments;
mod policies;
mod records;
mod rollout;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::json;

pub(crate) use access::Operator;
pub use rollout::{CONFIG_HEADER, DIGEST_HEADER, ascii};

use crate::{
    calls::Calls,
    config::Secret,
    devices::Devices,
    edge::socketio::SocketIo,
    operate::probes::{self, Probes},
    policies::{directory::Reloads, experiments::Experiments, records::Records, rollout::Rollouts, slots::Policies},
    telemetry::Metrics,
};

/// What the admin API looks at.
pub struct Admin {
    /// Whether this replica is ready.
    pub(crate) probes: Arc<Probes>,
    /// The Socket.IO server.
    pub io: SocketIo,
    /// Calls.
    pub calls: Arc<Calls>,
    /// The four slots.
    pub policies: Arc<Policies>,
    /// The last decisions.
    pub records: Arc<Records>,
    /// The policy directory.
    pub policy_files: Reloads,
    /// Policies of the cluster.
    pub rollouts: Rollouts,
    /// Experiments.
    pub experiments: Arc<Experiments>,
    /// Sessions of devices.
    pub devices: Arc<Devices>,
    /// Renders `/metrics`.
    pub metrics: Metrics,
    /// Asked of whoever does not come from loopback.
    pub token: Option<Secret>,
}

/// The routes, behind the access rule.
pub(crate) fn router(admin: Admin) -> Router {
    let admin = Arc::new(admin);
    let probes = admin.probes.clone();
    Router::new()
        .route("/v1/emit", post(emit::emit))
        .route("/metrics", get(metrics))
        .merge(devices::routes())
        .merge(experiments::routes())
        .merge(records::routes())
        .merge(policies::routes())
        .merge(rollout::routes())
        .route_layer(middleware::from_fn_with_state(admin.clone(), access::check))
        .fallback(|| async { refusal(StatusCode::NOT_FOUND, "no such endpoint") })
        .with_state(admin)
        // A probe has no token.
        .merge(probes::routes(probes))
}

async fn metrics(State(admin): State<Arc<Admin>>) -> String {
    admin.devices.publish(&admin.io);
    admin.probes.replicas.publish();
    metrics::gauge!("pointwork_ready").set(f64::from(u8::from(admin.probes.missing().is_none())));
    admin.metrics.render(|page| {
        admin.policies.expose(page, |slot| admin.rollouts.is_refused(slot));
        admin.calls.expose(page);
    })
}

/// `{error}` with a status.
fn refusal(status: StatusCode, error: impl Into<String>) -> Response {
    (status, Json(json!({ "error": error.into() }))).into_response()
}
