//! `POST /v1/emit`: how the application's backend reaches its clients.

use std::sync::Arc;

use axum::{
    Json,
    extract::{State, rejection::JsonRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::state::{Admin, refusal};
use crate::edge::{payload::Args, send::broadcast};

/// Names that Socket.IO keeps for itself: a client would refuse to handle them as events.
const RESERVED: [&str; 6] =
    ["connect", "connect_error", "disconnect", "disconnecting", "newListener", "removeListener"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Emit {
    #[serde(default = "root")]
    namespace: String,
    /// At least one: to Socket.IO an empty set means everyone, and a set that came out empty must not.
    rooms: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
    event: String,
    #[serde(default)]
    args: Vec<Value>,
}

fn root() -> String {
    "/".to_owned()
}

pub(super) async fn emit(
    State(admin): State<Arc<Admin>>,
    body: Result<Json<Map<String, Value>>, JsonRejection>,
) -> Response {
    let request = match body.map(|Json(body)| serde_json::from_value::<Emit>(Value::Object(body))) {
        Ok(Ok(request)) => request,
        Ok(Err(error)) => return refusal(StatusCode::BAD_REQUEST, error.to_string()),
        Err(JsonRejection::JsonDataError(_)) => {
            return refusal(StatusCode::BAD_REQUEST, "the body must be a JSON object");
        }
        Err(rejection) => return refusal(rejection.status(), rejection.body_text()),
    };
    if request.rooms.is_empty() || request.rooms.iter().chain(&request.except).any(String::is_empty) {
        return refusal(StatusCode::BAD_REQUEST, "rooms must name at least one room, and no name may be empty");
    }
    if request.event.is_empty() || RESERVED.contains(&request.event.as_str()) {
        return refusal(StatusCode::BAD_REQUEST, "event must be a name that Socket.IO does not keep for itself");
    }
    let Some(namespace) = admin.io.of(&request.namespace) else {
        return refusal(StatusCode::NOT_FOUND, format!("no namespace {}", request.namespace));
    };
    let Ok(args) = rmpv::ext::to_value(&request.args) else {
        return refusal(StatusCode::BAD_REQUEST, "args cannot be sent");
    };
    let rmpv::Value::Array(args) = args else { return refusal(StatusCode::BAD_REQUEST, "args must be a list") };
    broadcast(namespace.to(request.rooms).except(request.except), &request.event, &Args(args));
    metrics::counter!("pointwork_emits_total").increment(1);
    Json(json!({ "ok": true })).into_response()
}
