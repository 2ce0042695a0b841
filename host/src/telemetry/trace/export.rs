//! Exports spans to a collector, as OTLP in protobuf over plain HTTP.

use parking_lot::Mutex;
use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use anyhow::Context as _;
use opentelemetry::{
    InstrumentationScope, KeyValue, SpanId, TraceFlags,
    trace::{SpanContext, SpanKind, Status, TraceState},
};
use opentelemetry_http::{Bytes, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceResponse};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks},
};
use prost::Message;
use ureq::Agent;

use super::span::EndedSpan;

/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The most characters of a collector's message in the log.
const REASON_CHARS_MAX: usize = 256;

pub(super) struct Exporter {
    exporter: SpanExporter,
    rejected: Arc<Mutex<Option<Rejected>>>,
    scope: InstrumentationScope,
}

/// The spans of an accepted request that the collector rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rejected {
    pub(super) spans: u64,
    pub(super) reason: String,
}

impl Exporter {
    pub(super) fn new(endpoint: &str, timeout: Duration, service: &str, replica: &str) -> anyhow::Result<Self> {
        let agent = Agent::config_builder().timeout_global(Some(timeout)).http_status_as_error(false).max_redirects(0);
        // Spans go directly to the address of the setting, and never through a proxy of the environment.
        let agent = agent.proxy(None).build().into();
        let rejected = Arc::default();
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(CollectorClient { agent, rejected: Arc::clone(&rejected) })
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .with_timeout(timeout)
            .build()
            .context("trace.otlp_endpoint")?;
        let who = [
            ("service.name", service),
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("service.instance.id", replica),
        ];
        let who = who.map(|(name, value)| KeyValue::new(name, value.to_owned()));
        exporter.set_resource(&Resource::builder_empty().with_attributes(who).build());
        Ok(Self { exporter, rejected, scope: InstrumentationScope::builder("pointwork").build() })
    }

    /// Sends the spans, and blocks until the collector has answered. Returns the rejected spans, if any. The error is for the log.
    pub(super) fn export(&self, batch: Vec<EndedSpan>) -> Result<Option<Rejected>, String> {
        if batch.is_empty() {
            return Ok(None);
        }
        let spans = batch.into_iter().map(|span| self.span(span)).collect();
        let exported = pin!(self.exporter.export(spans));
        // The client blocks, so the first poll has the result.
        match exported.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result.map(|()| self.rejected.lock().take()).map_err(|error| error.to_string()),
            Poll::Pending => Err("the exporter waits for something else than its client".to_owned()),
        }
    }

    fn span(&self, span: EndedSpan) -> SpanData {
        let EndedSpan { name, context, parent, began, ended, is_error, attributes } = span;
        SpanData {
            span_context: SpanContext::new(
                context.trace,
                context.span,
                TraceFlags::SAMPLED,
                false,
                TraceState::default(),
            ),
            parent_span_id: parent.unwrap_or(SpanId::INVALID),
            parent_span_is_remote: parent.is_some(),
            span_kind: SpanKind::Server,
            name: name.into(),
            start_time: began,
            end_time: ended,
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: if is_error { Status::error("") } else { Status::Unset },
            instrumentation_scope: self.scope.clone(),
        }
    }
}

/// The HTTP client of the exporter. It blocks its thread.
#[derive(Debug)]
struct CollectorClient {
    agent: Agent,
    /// Rejected spans of the last request, which the result of the exporter does not contain.
    rejected: Arc<Mutex<Option<Rejected>>>,
}

impl Rejected {
    /// `None` if the collector accepted every span, or the answer cannot be read.
    fn read(answer: &[u8]) -> Option<Self> {
        let ExportTracePartialSuccess { rejected_spans, error_message } =
            ExportTraceServiceResponse::decode(answer).ok()?.partial_success?;
        let spans = u64::try_from(rejected_spans).ok().filter(|spans| *spans > 0)?;
        Some(Self { spans, reason: error_message.chars().take(REASON_CHARS_MAX).collect() })
    }
}

impl opentelemetry_http::HttpClient for CollectorClient {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let mut answer = self.agent.run(Request::from_parts(parts, body.as_ref()))?;
            let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
            *self.rejected.lock() = if answer.status().is_success() { Rejected::read(&body) } else { None };
            let mut response = Response::new(Bytes::from(body));
            *response.status_mut() = answer.status();
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_rejected_spans_of_an_answer() {
        let answer = |rejected_spans, reason: &str| {
            let partial = ExportTracePartialSuccess { rejected_spans, error_message: reason.to_owned() };
            Rejected::read(&ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec())
        };
        assert_eq!(answer(3, "too old"), Some(Rejected { spans: 3, reason: "too old".to_owned() }));
        assert_eq!(answer(1, &"é".repeat(300)).map(|rejected| rejected.reason.chars().count()), Some(REASON_CHARS_MAX));
        assert_eq!((answer(0, "a warning"), answer(-1, "")), (None, None));
        assert_eq!(
            (Rejected::read(b""), Rejected::read(b"<html>")),
            (None, None),
            "all taken; no answer of a collector"
        );
    }
}
