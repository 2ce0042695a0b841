//! `/v1/experiments`: what operators see of experiments and do with them.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, Query, State, rejection::JsonRejection},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use pointwork_core::experiments::{ChangeError, CreateError, Experiment, Slot};
use pointwork_policy::WASM_MAX_BYTES;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::state::{Admin, refusal};
use crate::policies::experiments::{ExperimentError, ExperimentStoreError, NewExperiment};

/// The header with a module's configuration, a JSON object.
const CONFIG: &str = "x-policy-config";

pub(super) fn routes() -> Router<Arc<Admin>> {
    let modules = post(put_module).layer(DefaultBodyLimit::max(WASM_MAX_BYTES));
    Router::new()
        .route("/v1/experiments", get(list).post(create))
        .route("/v1/experiments/modules", modules)
        .route("/v1/experiments/{name}", get(show))
        .route("/v1/experiments/{name}/report", get(report))
        .route("/v1/experiments/{name}/weights", post(set_weights))
        .route("/v1/experiments/{name}/pause", post(pause))
        .route("/v1/experiments/{name}/resume", post(resume))
        .route("/v1/experiments/{name}/promote", post(promote))
        .route("/v1/experiments/{name}/abort", post(abort))
}

async fn list(State(admin): State<Arc<Admin>>) -> Response {
    admin.experiments.list().await.map_or_else(|error| failed(&error), |list| Json(list).into_response())
}

async fn show(State(admin): State<Arc<Admin>>, Path(name): Path<String>) -> Response {
    let found = admin.experiments.get(&name).await;
    shown(&admin, found)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct For {
    slot: Slot,
}

/// The module is the body: `{digest, name, version}`. It is kept for a week, or until 16 later ones are there, unless an experiment comes to need it.
async fn put_module(
    State(admin): State<Arc<Admin>>,
    Query(For { slot }): Query<For>,
    headers: HeaderMap,
    wasm: Bytes,
) -> Response {
    let Ok(config) = headers.get(CONFIG).map_or(Ok("{}"), |config| config.to_str()) else {
        return refusal(StatusCode::BAD_REQUEST, format!("{CONFIG} must be visible ASCII"));
    };
    // As in the settings: equal configurations are equal texts, and so equal digests.
    let Ok(config) = serde_json::from_str::<Map<String, Value>>(config) else {
        return refusal(StatusCode::BAD_REQUEST, format!("{CONFIG} must be a JSON object"));
    };
    match admin.experiments.put_module(slot, wasm, Value::Object(config).to_string()).await {
        Ok(prepared) => {
            let info = prepared.info();
            Json(json!({ "digest": prepared.digest().to_string(), "name": info.name, "version": info.version }))
                .into_response()
        }
        Err(error) => failed(&error),
    }
}

async fn create(State(admin): State<Arc<Admin>>, body: Result<Json<Value>, JsonRejection>) -> Response {
    match read::<NewExperiment>(body) {
        Ok(new) => {
            let created = admin.experiments.create(new).await;
            shown(&admin, created)
        }
        Err(refused) => *refused,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Weights {
    /// Of 10,000, by arm.
    weights: Vec<u32>,
}

async fn set_weights(
    State(admin): State<Arc<Admin>>,
    Path(name): Path<String>,
    body: Result<Json<Value>, JsonRejection>,
) -> Response {
    match read::<Weights>(body) {
        Ok(Weights { weights }) => {
            let changed = admin.experiments.set_weights(&name, &weights).await;
            shown(&admin, changed)
        }
        Err(refused) => *refused,
    }
}

async fn pause(State(admin): State<Arc<Admin>>, Path(name): Path<String>) -> Response {
    let changed = admin.experiments.pause(&name).await;
    shown(&admin, changed)
}

async fn resume(State(admin): State<Arc<Admin>>, Path(name): Path<String>) -> Response {
    let changed = admin.experiments.resume(&name).await;
    shown(&admin, changed)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Promote {
    /// The treatment; may be left out if there is one only.
    #[serde(default)]
    arm: Option<String>,
}

async fn promote(
    State(admin): State<Arc<Admin>>,
    Path(name): Path<String>,
    body: Result<Json<Value>, JsonRejection>,
) -> Response {
    match read::<Promote>(body) {
        Ok(Promote { arm }) => {
            let changed = admin.experiments.promote(&name, arm.as_deref()).await;
            shown(&admin, changed)
        }
        Err(refused) => *refused,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Abort {
    /// Why, for whoever reads it later.
    #[serde(default)]
    reason: Option<String>,
}

async fn abort(
    State(admin): State<Arc<Admin>>,
    Path(name): Path<String>,
    body: Result<Json<Value>, JsonRejection>,
) -> Response {
    match read::<Abort>(body) {
        Ok(Abort { reason }) => {
            let changed = admin.experiments.abort(&name, reason.as_deref().unwrap_or("by an operator")).await;
            shown(&admin, changed)
        }
        Err(refused) => *refused,
    }
}

/// `{report, text}`: the figures, and as operators read them.
async fn report(State(admin): State<Arc<Admin>>, Path(name): Path<String>) -> Response {
    match admin.experiments.report(&name).await {
        Ok(report) => Json(json!({ "text": report.to_string(), "report": report })).into_response(),
        Err(error) => failed(&error),
    }
}

fn read<T: DeserializeOwned>(body: Result<Json<Value>, JsonRejection>) -> Result<T, Box<Response>> {
    let Json(body) = body.map_err(|rejection| Box::new(refusal(rejection.status(), rejection.body_text())))?;
    serde_json::from_value(body).map_err(|error| Box::new(refusal(StatusCode::BAD_REQUEST, error.to_string())))
}

fn shown(admin: &Admin, experiment: Result<Experiment, ExperimentError>) -> Response {
    match experiment {
        Ok(experiment) => Json(admin.experiments.show(&experiment)).into_response(),
        Err(error) => failed(&error),
    }
}

fn failed(error: &ExperimentError) -> Response {
    let status = match error {
        ExperimentError::Change(ChangeError::Unknown(_)) => StatusCode::NOT_FOUND,
        ExperimentError::Create(CreateError::Taken(_) | CreateError::Busy { .. } | CreateError::TooMany)
        | ExperimentError::Change(ChangeError::Over { .. } | ChangeError::Not { .. } | ChangeError::Busy { .. })
        | ExperimentError::Store(ExperimentStoreError::NoModule)
        | ExperimentError::Rollout(_)
        | ExperimentError::NativeInCluster
        | ExperimentError::Contended => StatusCode::CONFLICT,
        ExperimentError::Create(_) | ExperimentError::Change(_) | ExperimentError::NoModule(_) => {
            StatusCode::BAD_REQUEST
        }
        ExperimentError::Module(_) => StatusCode::UNPROCESSABLE_ENTITY,
        ExperimentError::Store(ExperimentStoreError::Away(_))
        | ExperimentError::Closing
        | ExperimentError::Devices(_) => StatusCode::SERVICE_UNAVAILABLE,
        ExperimentError::Store(ExperimentStoreError::Unreadable(_) | ExperimentStoreError::File(_)) => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    refusal(status, error.to_string())
}
