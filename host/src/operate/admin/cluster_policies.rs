//! `/v1/policies/{slot}/…` of a cluster: push, and the module for a pull, which are refused where the policy directory rules; and what
//! undo and retry are in a cluster.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, Query, State, rejection::BytesRejection},
    http::{
        HeaderMap, HeaderName, StatusCode,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
    routing::{get, post},
};
use pointwork_policy::{SlotName, WASM_MAX_BYTES};
use serde::Deserialize;
use serde_json::{Value, json};

use super::state::{Admin, no_slot, refusal};
use crate::policies::{
    PolicyModule,
    rollout::{RolloutChange, RolloutError},
};
use pointwork_policy::PolicyJson;

/// A module's configuration, as JSON in ASCII: what is pushed with a module, and what a pull gives.
pub const CONFIG_HEADER: &str = "x-pointwork-config";
/// A pulled module's digest.
pub const DIGEST_HEADER: &str = "x-pointwork-digest";
/// The longest configuration that is pushed, in bytes of its JSON.
const CONFIG_MAX_BYTES: usize = 64 << 10;

pub(super) fn routes() -> Router<Arc<Admin>> {
    let push = post(push).layer(DefaultBodyLimit::max(WASM_MAX_BYTES));
    Router::new().route("/v1/policies/{slot}/push", push).route("/v1/policies/{slot}/module", get(module))
}

/// Adds to a slot's status what is known of it in the cluster: `replicas`, `converged`, `pending`, `failed`, `pointer`.
pub(super) fn describe(admin: &Admin, slot: SlotName, status: &mut Value) {
    let rollout = admin.rollouts.status(slot).and_then(|rollout| serde_json::to_value(rollout).ok());
    if let (Some(status), Some(Value::Object(rollout))) = (status.as_object_mut(), rollout) {
        status.extend(rollout);
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Push {
    #[serde(default)]
    force: bool,
    config: Option<String>,
}

/// The body is the module, its configuration `?config=` or the header. 202 when every replica is about to prepare it:
/// `{digest, version, pushed_ms, changed, arms}`.
async fn push(
    State(admin): State<Arc<Admin>>,
    Path(slot): Path<String>,
    Query(asked): Query<Push>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let wasm = match body {
        Ok(wasm) => wasm,
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => return too_large(&headers),
        Err(rejection) => return refusal(rejection.status(), rejection.body_text()),
    };
    let slot = match slot.parse::<SlotName>() {
        Ok(slot) => slot,
        Err(error) => return no_slot(error),
    };
    let header = headers.get(CONFIG_HEADER).map(|config| config.to_str().unwrap_or("?").to_owned());
    let config = match config_of(asked.config.or(header).as_deref()) {
        Ok(config) => config,
        Err(problem) => return refusal(StatusCode::BAD_REQUEST, format!("the configuration {problem}")),
    };
    if wasm.is_empty() {
        return refusal(StatusCode::BAD_REQUEST, "the body is empty: it must be the module");
    }
    answer(admin.rollouts.push(slot, PolicyModule { wasm, config }, asked.force).await)
}

/// 202 with what is to serve everywhere.
pub(super) async fn undo(admin: &Admin, slot: SlotName) -> Response {
    answer(admin.rollouts.undo(slot).await)
}

/// 202 with what is about to be prepared everywhere, if its module is still stored.
pub(super) async fn retry(admin: &Admin, slot: SlotName, digest: &str, force: bool) -> Response {
    answer(admin.rollouts.retry(slot, digest, force).await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pull {
    digest: Option<String>,
}

/// The module; its configuration and digest are in headers.
async fn module(State(admin): State<Arc<Admin>>, Path(slot): Path<String>, Query(asked): Query<Pull>) -> Response {
    let slot = match slot.parse::<SlotName>() {
        Ok(slot) => slot,
        Err(error) => return no_slot(error),
    };
    match admin.rollouts.module(slot, asked.digest.as_deref()).await {
        Ok((digest, PolicyModule { wasm, config })) => {
            let headers = [
                (CONTENT_TYPE, "application/wasm".to_owned()),
                (HeaderName::from_static(CONFIG_HEADER), ascii(&config)),
                (HeaderName::from_static(DIGEST_HEADER), digest.to_string()),
            ];
            (headers, wasm).into_response()
        }
        Err(error) => failed(&error),
    }
}

/// On one line, its keys in order, as from a file: equal configurations have equal digests.
fn config_of(given: Option<&str>) -> Result<String, String> {
    let Some(given) = given else { return Ok(PolicyJson::default().to_json()) };
    if given.len() > CONFIG_MAX_BYTES {
        return Err(format!("has {} bytes, more than {CONFIG_MAX_BYTES}", given.len()));
    }
    let parsed = serde_json::from_str::<PolicyJson>(given).map_err(|error| format!("is wrong: {error}"))?;
    Ok(parsed.to_json())
}

/// JSON with what is not ASCII escaped, as a header can carry it.
#[must_use]
pub fn ascii(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for unit in json.chars() {
        if unit.is_ascii() {
            escaped.push(unit);
        } else {
            for unit in unit.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    escaped
}

fn too_large(headers: &HeaderMap) -> Response {
    let said = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()).unwrap_or("too many");
    let problem = format!("the module has {said} bytes, more than the {WASM_MAX_BYTES} a policy may have");
    refusal(StatusCode::PAYLOAD_TOO_LARGE, problem)
}

fn answer(changed: Result<RolloutChange, RolloutError>) -> Response {
    match changed {
        Ok(changed) => (StatusCode::ACCEPTED, Json(json!(changed))).into_response(),
        Err(error) => failed(&error),
    }
}

fn failed(error: &RolloutError) -> Response {
    let status = match error {
        RolloutError::Store(_) | RolloutError::Raced => StatusCode::SERVICE_UNAVAILABLE,
        RolloutError::NoModule(_) | RolloutError::Native | RolloutError::Lost(_) => StatusCode::NOT_FOUND,
        RolloutError::Directory | RolloutError::Push(_) | RolloutError::Undo(_) | RolloutError::Retry(_) => {
            StatusCode::CONFLICT
        }
    };
    refusal(status, error.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_an_object_on_one_line_in_order() {
        assert_eq!(config_of(None).unwrap(), "{}");
        assert_eq!(config_of(Some("{\"b\": 1,\n \"a\": \"ü\"}")).unwrap(), r#"{"a":"ü","b":1}"#);
        assert!(config_of(Some("[]")).unwrap_err().starts_with("is wrong: "));
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(CONFIG_MAX_BYTES));
        assert!(config_of(Some(&long)).unwrap_err().contains("more than"));
    }

    #[test]
    fn a_header_carries_what_is_not_ascii() {
        let json = r#"{"a":"ü😀"}"#;
        assert!(ascii(json).is_ascii());
        assert_eq!(config_of(Some(&ascii(json))).unwrap(), json);
    }
}
