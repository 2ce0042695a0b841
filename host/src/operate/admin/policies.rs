//! `/v1/policies`: what serves the slots, and the ways back.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Path, State, rejection::JsonRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use pointwork_policy::SlotName;
use serde::Deserialize;
use serde_json::json;

use super::{
    cluster_policies,
    state::{Admin, no_slot, refusal},
};
use crate::config::PolicySource;
use crate::policies::slots::NotRetried;

pub(super) fn routes() -> Router<Arc<Admin>> {
    Router::new()
        .route("/v1/policies", get(list))
        .route("/v1/policies/{slot}/undo", post(undo))
        .route("/v1/policies/{slot}/retry", post(retry))
}

/// `{source, policies}`: who says what serves, and one for each slot; in a cluster with what is known of the other replicas.
async fn list(State(admin): State<Arc<Admin>>) -> Response {
    let described = admin.policies.status().map(|status| {
        let slot = status.slot;
        let mut described = json!(status);
        cluster_policies::describe(&admin, slot, &mut described);
        described
    });
    Json(json!({ "source": admin.rollouts.source().as_str(), "policies": described })).into_response()
}

/// The slot as it is then. In directory mode it stays so until the slot's file changes; in a cluster it is every replica's.
async fn undo(State(admin): State<Arc<Admin>>, Path(slot): Path<String>) -> Response {
    let slot = match slot.parse::<SlotName>() {
        Ok(slot) => slot,
        Err(error) => return no_slot(error),
    };
    if admin.rollouts.source() == PolicySource::Cluster {
        return cluster_policies::undo(&admin, slot).await;
    }
    // One that an earlier process kept is read and compiled.
    blocking(move || match admin.policies.undo(slot) {
        Ok(_) => Json(admin.policies.slot_status(slot)).into_response(),
        Err(error) => refusal(StatusCode::CONFLICT, error.to_string()),
    })
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Retry {
    /// As the status tells it, or its first 12 digits or more.
    digest: String,
    /// In a cluster: whether those replicas switch that can.
    #[serde(default)]
    force: bool,
}

/// The slot as it is then: in directory mode its file was loaded again, if that is what was retried.
async fn retry(
    State(admin): State<Arc<Admin>>,
    Path(slot): Path<String>,
    body: Result<Json<Retry>, JsonRejection>,
) -> Response {
    let slot = match slot.parse::<SlotName>() {
        Ok(slot) => slot,
        Err(error) => return no_slot(error),
    };
    let Json(Retry { digest, force }) = match body {
        Ok(body) => body,
        Err(rejection) => return refusal(rejection.status(), rejection.body_text()),
    };
    if admin.rollouts.source() == PolicySource::Cluster {
        return cluster_policies::retry(&admin, slot, &digest, force).await;
    }
    blocking(move || match admin.policies.find_bad(slot, &digest) {
        Ok(digest) => {
            admin.policies.retry(slot, &digest);
            admin.policy_files.reload(slot, digest);
            Json(admin.policies.slot_status(slot)).into_response()
        }
        Err(error) => not_retried(error),
    })
    .await
}

fn not_retried(error: NotRetried) -> Response {
    let status = match error {
        NotRetried::NoDigest => StatusCode::BAD_REQUEST,
        NotRetried::Unknown => StatusCode::NOT_FOUND,
        NotRetried::Ambiguous => StatusCode::CONFLICT,
    };
    refusal(status, error.to_string())
}

/// What compiles, or writes files, on a thread where nobody else waits.
async fn blocking(work: impl FnOnce() -> Response + Send + 'static) -> Response {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| refusal(StatusCode::INTERNAL_SERVER_ERROR, "the work was given up"))
}
