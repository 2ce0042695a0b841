//! The routes of the admin listener.

use std::sync::Arc;

use axum::{
    Router,
    http::StatusCode,
    middleware,
    routing::{get, post},
};

use super::{
    access, cluster_policies, devices, emit, experiments, metrics, policies, records,
    state::{Admin, refusal},
};
use crate::operate::probes;

/// The routes, behind the access rule.
pub(crate) fn router(admin: Admin) -> Router {
    let admin = Arc::new(admin);
    let probes = admin.probes.clone();
    Router::new()
        .route("/v1/emit", post(emit::emit))
        .route("/metrics", get(metrics::metrics))
        .merge(devices::routes())
        .merge(experiments::routes())
        .merge(records::routes())
        .merge(policies::routes())
        .merge(cluster_policies::routes())
        .route_layer(middleware::from_fn_with_state(admin.clone(), access::check))
        .fallback(|| async { refusal(StatusCode::NOT_FOUND, "no such endpoint") })
        .with_state(admin)
        // A probe has no token.
        .merge(probes::routes(probes))
}
