//! A span that has ended, as it waits for the exporter.

use std::time::SystemTime;

use opentelemetry::{KeyValue, SpanId};

use super::context::TraceContext;

/// A span that has ended.
#[derive(Debug)]
pub(super) struct EndedSpan {
    pub(super) name: &'static str,
    pub(super) context: TraceContext,
    pub(super) parent: Option<SpanId>,
    pub(super) began: SystemTime,
    pub(super) ended: SystemTime,
    pub(super) is_error: bool,
    pub(super) attributes: Vec<KeyValue>,
}
