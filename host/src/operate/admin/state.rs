//! What the admin API can reach, and how it refuses a request.

use std::sync::Arc;

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pointwork_policy::NoSlot;
use serde_json::json;

use crate::{
    calls::Calls,
    config::Secret,
    devices::Devices,
    edge::socketio::SocketIo,
    operate::probes::Probes,
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

/// `{error}` with a status.
pub(super) fn refusal(status: StatusCode, error: impl Into<String>) -> Response {
    (status, Json(json!({ "error": error.into() }))).into_response()
}

pub(super) fn no_slot(error: NoSlot) -> Response {
    refusal(StatusCode::NOT_FOUND, format!("slot {error}"))
}
