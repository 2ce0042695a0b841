//! `/v1/devices`: what operators see of devices and do with them.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Path, Query, State, rejection::JsonRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::json;

use super::state::{Admin, refusal};
use crate::{
    devices::{Change, OperateError},
    edge::auth::SUB_BYTES_MAX,
};

/// How many devices one answer has unless asked for fewer.
const LIMIT_MAX: usize = 1_000;
const LIMIT_DEFAULT: usize = 100;

pub(super) fn routes() -> Router<Arc<Admin>> {
    Router::new()
        .route("/v1/devices", get(list))
        .route("/v1/devices/pair", post(pair))
        .route("/v1/devices/{device}", get(show))
        .route("/v1/devices/{device}/disconnect", post(disconnect))
        .route("/v1/devices/{device}/block", post(block))
        .route("/v1/devices/{device}/unblock", post(unblock))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    after: Option<String>,
    limit: Option<usize>,
}

/// `{devices, next}`; `next` is what to say as `after`, null at the end.
async fn list(State(admin): State<Arc<Admin>>, Query(page): Query<Page>) -> Response {
    let limit = page.limit.unwrap_or(LIMIT_DEFAULT).clamp(1, LIMIT_MAX);
    match admin.devices.list(page.after.as_deref(), limit).await {
        Ok(devices) => {
            let next = (devices.len() == limit).then(|| devices.last().map(|device| device["device_id"].clone()));
            Json(json!({ "devices": devices, "next": next.flatten() })).into_response()
        }
        Err(error) => failed(&error),
    }
}

async fn show(State(admin): State<Arc<Admin>>, Path(device): Path<String>) -> Response {
    admin.devices.show(&device).await.map_or_else(|error| failed(&error), |device| Json(device).into_response())
}

async fn disconnect(State(admin): State<Arc<Admin>>, Path(device): Path<String>) -> Response {
    change(&admin, &device, Change::Disconnect).await
}

async fn block(State(admin): State<Arc<Admin>>, Path(device): Path<String>) -> Response {
    change(&admin, &device, Change::Block).await
}

async fn unblock(State(admin): State<Arc<Admin>>, Path(device): Path<String>) -> Response {
    change(&admin, &device, Change::Unblock).await
}

async fn change(admin: &Admin, device: &str, change: Change) -> Response {
    let changed = admin.devices.change(device, change).await;
    changed.map_or_else(|error| failed(&error), |device| Json(device).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    pairing_code: String,
    /// `user:ID` or `org:ID`.
    owner: Option<String>,
}

/// `{device_id, device_token}`.
async fn pair(State(admin): State<Arc<Admin>>, body: Result<Json<Pair>, JsonRejection>) -> Response {
    let Json(Pair { pairing_code, owner }) = match body {
        Ok(body) => body,
        Err(rejection) => return refusal(rejection.status(), rejection.body_text()),
    };
    let is_owner = |owner: &str| {
        let named = owner.strip_prefix("user:").or(owner.strip_prefix("org:"));
        named.is_some_and(|id| !id.is_empty() && id.len() <= SUB_BYTES_MAX)
    };
    if owner.as_deref().is_some_and(|owner| !is_owner(owner)) {
        return refusal(StatusCode::BAD_REQUEST, "owner must be user:ID or org:ID");
    }
    match admin.devices.pair(&pairing_code, owner.map(Arc::from)).await {
        Ok((device, token)) => Json(json!({ "device_id": device, "device_token": token })).into_response(),
        Err(error) => failed(&error),
    }
}

fn failed(error: &OperateError) -> Response {
    let status = match error {
        OperateError::Unknown => StatusCode::NOT_FOUND,
        OperateError::Away => StatusCode::SERVICE_UNAVAILABLE,
        OperateError::Contended => StatusCode::CONFLICT,
        OperateError::Unreadable => StatusCode::INTERNAL_SERVER_ERROR,
        OperateError::Token(_) => StatusCode::NOT_IMPLEMENTED,
    };
    refusal(status, error.to_string())
}
