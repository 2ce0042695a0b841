//! `GET /v1/policies/records?slot=&limit=`: the last decisions in memory, one JSON object a line, the newest last.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Query, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use futures_util::stream;
use pointwork_policy::{SlotName, record::DecisionRecord};
use serde::Deserialize;

use super::state::{Admin, refusal};

/// How many records are made text in one go.
const CHUNK: usize = 256;

pub(super) fn routes() -> Router<Arc<Admin>> {
    Router::new().route("/v1/policies/records", get(records))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    slot: Option<SlotName>,
    limit: Option<usize>,
}

async fn records(
    State(admin): State<Arc<Admin>>,
    asked: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> Response {
    let Query(Asked { slot, limit }) = match asked {
        Ok(asked) => asked,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, error.body_text()),
    };
    let latest = admin.records.latest(slot, limit.unwrap_or(usize::MAX));
    let lines = stream::iter(Chunks { latest, from: 0 }.map(Ok::<_, std::convert::Infallible>));
    ([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

/// The records' lines, some at a time.
struct Chunks {
    latest: Vec<Arc<DecisionRecord>>,
    from: usize,
}

impl Iterator for Chunks {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let until = (self.from + CHUNK).min(self.latest.len());
        let records = self.latest.get(self.from..until).filter(|records| !records.is_empty())?;
        self.from = until;
        Some(records.iter().map(|record| record.to_line() + "\n").collect())
    }
}
