//! Spans of calls, for a collector that speaks OTLP over HTTP: one of the call at its caller's replica, and one of what another
//! replica had its daemon do, its child. They hold the method, who was asked, how it ended and how long it waited; never
//! parameters, results or tokens.
//!
//! A span that ends goes into a bounded queue; a thread of its own sends what is there. What finds no room is dropped and counted:
//! a call never waits for a collector. Without a collector there is no tracer, and a call pays for finding that out.

mod export;

use std::{
    fmt,
    sync::{
        Arc,
        mpsc::{self, Receiver, SyncSender, TrySendError},
    },
    thread,
    time::{Duration, SystemTime},
};

use metrics::Counter;
use opentelemetry::{SpanId, TraceId};

use self::export::{Exporter, Rejected};
use crate::config::{Share, TraceConfig};

/// How long the last spans may take to be sent when the host ends, beyond one request's time, of which no more than this counts: whoever
/// ends the host waits for as long as the drain takes, and this comes after it.
const CLOSING_MAX: Duration = Duration::from_secs(1);
const CLOSING_REQUEST_MAX: Duration = Duration::from_secs(2);
/// The longest method in a span; a longer one is cut.
const METHOD_BYTES_MAX: usize = 256;

/// What ends spans, and samples them.
pub struct Tracer {
    sample: Share,
    timeout: Duration,
    queue: SyncSender<Sent>,
    dropped: Counter,
}

/// What the thread is sent.
enum Sent {
    Span(Box<Ended>),
    /// All that was sent before is to be exported, and the sender told.
    Flush(SyncSender<()>),
}

/// A span within a trace, as others are told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceContext {
    trace: TraceId,
    span: SpanId,
}

/// A span that is over.
#[derive(Debug)]
struct Ended {
    name: &'static str,
    context: TraceContext,
    parent: Option<SpanId>,
    began: SystemTime,
    ended: SystemTime,
    is_error: bool,
    attributes: Vec<(&'static str, Attribute)>,
}

#[derive(Debug)]
enum Attribute {
    Text(String),
    Word(&'static str),
    Millis(f64),
    Flag(bool),
}

impl Tracer {
    /// Starts the thread that sends spans; `None` when the settings name no collector. `replica` tells this process from others.
    ///
    /// # Errors
    /// When there can be no exporter for the collector's address, or no thread.
    pub fn start(config: &TraceConfig, replica: &str) -> anyhow::Result<Option<Arc<Self>>> {
        let Some(endpoint) = &config.otlp_endpoint else { return Ok(None) };
        let timeout = config.timeout_ms.as_millis();
        let exporter = Exporter::new(endpoint.as_str(), timeout, &config.service_name, replica)?;
        let (queue, queued) = mpsc::sync_channel(config.queue_spans_max.as_usize());
        thread::Builder::new().name("spans".to_owned()).spawn(move || send(&exporter, &queued))?;
        Ok(Some(Arc::new(Self { sample: config.sample, timeout, queue, dropped: counter("dropped") })))
    }

    /// A call came in; `None` for one that is not sampled.
    pub(crate) fn call(self: &Arc<Self>) -> Option<CallSpan> {
        self.sample.holds(fastrand::u64(..)).then(|| CallSpan {
            tracer: self.clone(),
            context: TraceContext { trace: TraceId::from(fastrand::u128(1..)), span: span_id() },
            began: SystemTime::now(),
            target: None,
        })
    }

    /// A request of another replica's caller came in, with the caller's `traceparent`; `None` for one that cannot be read or is not
    /// sampled. To be told whether the daemon answered.
    pub(crate) fn request(self: &Arc<Self>, traceparent: &str) -> Option<impl FnOnce(bool) + Send + use<>> {
        let parent = TraceContext::read(traceparent)?;
        let (tracer, began) = (self.clone(), SystemTime::now());
        Some(move |is_answered: bool| {
            tracer.end(Ended {
                name: "rpc.request",
                context: TraceContext { trace: parent.trace, span: span_id() },
                parent: Some(parent.span),
                began,
                ended: SystemTime::now(),
                is_error: !is_answered,
                attributes: vec![("pointwork.answered", Attribute::Flag(is_answered))],
            });
        })
    }

    fn end(&self, span: Ended) {
        match self.queue.try_send(Sent::Span(Box::new(span))) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.dropped.increment(1),
        }
    }

    fn closing(&self) -> Duration {
        self.timeout.min(CLOSING_REQUEST_MAX) + CLOSING_MAX
    }

    /// Waits until the spans that ended before were sent, or could not be: 3 s at most.
    pub async fn close(self: Arc<Self>) {
        let waited = tokio::task::spawn_blocking(move || {
            let (told, tells) = mpsc::sync_channel(1);
            // A queue that is full is being sent.
            let is_taken = self.queue.try_send(Sent::Flush(told)).is_ok();
            is_taken && tells.recv_timeout(self.closing()).is_ok()
        });
        if !waited.await.unwrap_or(false) {
            tracing::warn!("the last spans were not sent");
        }
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").finish_non_exhaustive()
    }
}

/// The span of a call.
pub(crate) struct CallSpan {
    tracer: Arc<Tracer>,
    context: TraceContext,
    began: SystemTime,
    target: Option<Target>,
}

/// Where a call's request went.
struct Target {
    /// `None`: to a daemon of this replica.
    replica: Option<Arc<str>>,
    waited: Duration,
}

impl CallSpan {
    /// The call's request is sent: to this replica's own daemon, or to another replica's.
    pub(crate) fn sent(&mut self, replica: Option<&Arc<str>>, waited: Duration) {
        self.target = Some(Target { replica: replica.cloned(), waited });
    }

    /// For the replica that the request goes to.
    pub(crate) fn context(&self) -> TraceContext {
        self.context
    }

    /// The call ended; `is_error` says whether its caller was told an error.
    pub(crate) fn end(self, method: &str, result: &'static str, is_error: bool) {
        let ended = SystemTime::now();
        let took = || ended.duration_since(self.began).unwrap_or_default();
        let waited = self.target.as_ref().map_or_else(took, |target| target.waited);
        let mut attributes = vec![
            ("rpc.method", Attribute::Text(cut(method).to_owned())),
            ("pointwork.result", Attribute::Word(result)),
            ("pointwork.wait_ms", Attribute::Millis(waited.as_secs_f64() * 1_000.0)),
        ];
        if let Some(Target { replica, .. }) = self.target {
            let target =
                replica.map_or(Attribute::Word("local"), |replica| Attribute::Text(replica.as_ref().to_owned()));
            attributes.push(("pointwork.target_replica", target));
        }
        let Self { tracer, context, began, .. } = self;
        tracer.end(Ended { name: "rpc.call", context, parent: None, began, ended, is_error, attributes });
    }
}

impl TraceContext {
    /// As W3C Trace Context has it, sampled.
    pub(crate) fn traceparent(self) -> String {
        format!("00-{}-{}-01", self.trace, self.span)
    }

    /// `None` for what is no `traceparent`, or says that nobody wants the trace.
    fn read(traceparent: &str) -> Option<Self> {
        let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let mut parts = traceparent.split('-');
        let mut part = |len: usize| parts.next().filter(|part| part.len() == len && is_hex(part));
        let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        let context = Self { trace: TraceId::from_hex(trace).ok()?, span: SpanId::from_hex(span).ok()? };
        let is_valid = context.trace != TraceId::INVALID && context.span != SpanId::INVALID;
        let is_known = version != "ff" && (version != "00" || parts.next().is_none());
        (is_valid && is_known && u8::from_str_radix(flags, 16).ok()? & 1 == 1).then_some(context)
    }
}

fn span_id() -> SpanId {
    SpanId::from(fastrand::u64(1..))
}

fn cut(method: &str) -> &str {
    &method[..method.floor_char_boundary(METHOD_BYTES_MAX)]
}

fn counter(result: &'static str) -> Counter {
    metrics::counter!("pointwork_trace_spans_total", "result" => result)
}

/// Sends what is there, until nobody is left who could send more.
fn send(exporter: &Exporter, queued: &Receiver<Sent>) {
    let (exported, failed) = (counter("exported"), counter("failed"));
    let mut is_troubled = false;
    while let Ok(first) = queued.recv() {
        let (batch, flushed) = batch(first, queued);
        let spans = batch.len() as u64;
        match exporter.export(batch) {
            Ok(None) => {
                exported.increment(spans);
                if std::mem::take(&mut is_troubled) {
                    tracing::info!("the collector takes spans again");
                }
            }
            Ok(Some(Rejected { spans: rejected, reason })) => {
                let rejected = rejected.min(spans);
                failed.increment(rejected);
                exported.increment(spans - rejected);
                if !std::mem::replace(&mut is_troubled, true) {
                    tracing::warn!(rejected, spans, reason, "the collector rejects spans");
                }
            }
            Err(problem) => {
                failed.increment(spans);
                if !std::mem::replace(&mut is_troubled, true) {
                    tracing::warn!(%problem, "the collector takes no spans");
                }
            }
        }
        if let Some(flushed) = flushed {
            let _ = flushed.try_send(());
        }
    }
}

/// Spans that are sent together at most.
const BATCH_MAX: usize = 512;
/// How long the first of a batch waits for others.
const BATCH_WAIT: Duration = Duration::from_millis(500);

fn batch(first: Sent, queued: &Receiver<Sent>) -> (Vec<Ended>, Option<SyncSender<()>>) {
    let until = std::time::Instant::now() + BATCH_WAIT;
    let (mut batch, mut next) = (Vec::new(), Some(first));
    while let Some(sent) = next {
        match sent {
            Sent::Flush(flushed) => return (batch, Some(flushed)),
            Sent::Span(span) => batch.push(*span),
        }
        let left = until.saturating_duration_since(std::time::Instant::now());
        next = if batch.len() < BATCH_MAX { queued.recv_timeout(left).ok() } else { None };
    }
    (batch, None)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let context = TraceContext { trace: TraceId::from(0xab), span: SpanId::from(0xcd) };
        let written = context.traceparent();
        assert_eq!(written, "00-000000000000000000000000000000ab-00000000000000cd-01");
        assert_eq!(TraceContext::read(&written), Some(context));
        assert_eq!(TraceContext::read(&format!("01{}-more", &written[2..])), Some(context), "of a later version");
    }

    #[test]
    fn anything_else_is_no_context() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        for nonsense in [
            String::new(),
            "00".into(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-00"),
            format!("00-{trace}-{span}-01-more"),
            format!("ff-{trace}-{span}-01"),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-+{}-{span}-01", &trace[1..]),
            format!("00-é{}-{span}-01", &trace[2..]),
        ] {
            assert_eq!(TraceContext::read(&nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_full_queue_drops_and_a_batch_is_bounded() {
        let (queue, queued) = mpsc::sync_channel(BATCH_MAX + 1);
        let sample = Share::new(1.0).unwrap();
        let tracer = Arc::new(Tracer { sample, timeout: Duration::ZERO, queue, dropped: Counter::noop() });
        for _ in 0..BATCH_MAX + 9 {
            tracer.call().unwrap().end("m", "success", false);
        }
        let first = queued.recv().unwrap();
        assert_eq!(batch(first, &queued).0.len(), BATCH_MAX);
        let last = queued.recv().unwrap();
        drop(tracer);
        assert_eq!(batch(last, &queued).0.len(), 1, "eight found no room");
    }

    #[test]
    fn a_collector_that_may_take_long_does_not_hold_up_the_end() {
        let closing = |timeout| {
            let (sample, dropped) = (Share::new(1.0).unwrap(), Counter::noop());
            Tracer { sample, timeout, queue: mpsc::sync_channel(1).0, dropped }.closing()
        };
        let limits = [Duration::from_millis(100), Duration::from_secs(60)].map(closing);
        assert_eq!(limits, [Duration::from_millis(1_100), Duration::from_secs(3)]);
    }

    #[test]
    fn a_long_method_is_cut_between_characters() {
        assert_eq!(cut("bash"), "bash");
        assert_eq!(cut(&"é".repeat(200)).len(), 256);
        assert_eq!(cut(&format!("a{}", "é".repeat(200))).len(), 255);
    }
}
