//! What a load balancer and a supervisor ask: whether this replica lives, and whether it should be sent clients. Answered on both
//! listeners, for a balancer looks at the port that it sends to; no token is asked for, and nothing is told of clients but their number.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::json;

use crate::{
    cluster::Replicas,
    driver::clock::utc,
    edge::socketio::{SocketIo, connected},
    operate::drain_phase::Phase,
    policies::rollout::Rollouts,
};

/// What the probes look at.
pub(crate) struct Probes {
    pub(crate) io: SocketIo,
    pub(crate) replicas: Arc<Replicas>,
    pub(crate) rollouts: Rollouts,
    pub(crate) phase: Phase,
}

impl Probes {
    /// Why this replica is not ready.
    pub(crate) fn missing(&self) -> Option<String> {
        let draining = self.phase.is_draining().then(|| "draining".to_owned());
        let missing = || self.replicas.missing().map(str::to_owned);
        draining.or_else(missing).or_else(|| self.rollouts.missing())
    }
}

/// `/health`, `/health/live` and `/health/ready`.
pub(crate) fn routes(probes: Arc<Probes>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/health/live", get(|| async { Json(json!({ "live": true })) }))
        .route("/health/ready", get(ready))
        .with_state(probes)
}

/// As the servers of the field answer: `{status, timestamp, service, processId, redis}` and, when Redis does not answer, 503 with
/// `error`; and `sockets`.
async fn health(State(probes): State<Arc<Probes>>) -> Response {
    let cluster = probes.replicas.cluster();
    let (redis, error) = match (cluster.is_alone(), cluster.standing().linked) {
        (true, _) => ("not configured", None),
        (false, true) => ("ok", None),
        (false, false) => ("error", Some("the link to Redis is down")),
    };
    let status = if error.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut body = json!({
        "status": if error.is_none() { "ok" } else { "error" },
        "timestamp": utc(),
        "service": "pointwork",
        "processId": cluster.uid(),
        "redis": redis,
        "sockets": connected(&probes.io),
    });
    if let (Some(error), Some(body)) = (error, body.as_object_mut()) {
        body.insert("error".to_owned(), error.into());
    }
    (status, Json(body)).into_response()
}

/// 200 when this replica knows every daemon of the cluster, serves its policies and stays, else 503 and why it does not.
async fn ready(State(probes): State<Arc<Probes>>) -> Response {
    match probes.missing() {
        None => Json(json!({ "ready": true })).into_response(),
        Some(reason) => {
            (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "ready": false, "reason": reason }))).into_response()
        }
    }
}
