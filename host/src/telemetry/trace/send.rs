//! Sends ended spans to the collector in batches, on a thread of its own.

use std::{
    sync::mpsc::{Receiver, SyncSender},
    time::Duration,
};

use metrics::Counter;

use super::{
    export::{Exporter, Rejected},
    span::EndedSpan,
};

/// A message to the thread.
pub(super) enum SpanMessage {
    Span(Box<EndedSpan>),
    /// Asks for an answer once everything queued before has been exported.
    Flush(SyncSender<()>),
}

/// Exports queued spans until the tracer is dropped.
pub(super) fn send(exporter: &Exporter, queued: &Receiver<SpanMessage>) {
    let (exported, failed) = (spans_counter("exported"), spans_counter("failed"));
    let mut is_failing = false;
    while let Ok(first) = queued.recv() {
        let (batch, flushed) = batch(first, queued);
        let spans = batch.len() as u64;
        match exporter.export(batch) {
            Ok(None) => {
                exported.increment(spans);
                if std::mem::take(&mut is_failing) {
                    tracing::info!("the collector takes spans again");
                }
            }
            Ok(Some(Rejected { spans: rejected, reason })) => {
                let rejected = rejected.min(spans);
                failed.increment(rejected);
                exported.increment(spans - rejected);
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!(rejected, spans, reason, "the collector rejects spans");
                }
            }
            Err(problem) => {
                failed.increment(spans);
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!(%problem, "the collector takes no spans");
                }
            }
        }
        if let Some(flushed) = flushed {
            let _ = flushed.try_send(());
        }
    }
}

/// The most spans in one batch.
pub(super) const BATCH_MAX: usize = 512;
/// How long the first span of a batch waits for others.
const BATCH_WAIT: Duration = Duration::from_millis(500);

pub(super) fn batch(first: SpanMessage, queued: &Receiver<SpanMessage>) -> (Vec<EndedSpan>, Option<SyncSender<()>>) {
    let until = std::time::Instant::now() + BATCH_WAIT;
    let (mut batch, mut next) = (Vec::new(), Some(first));
    while let Some(sent) = next {
        match sent {
            SpanMessage::Flush(flushed) => return (batch, Some(flushed)),
            SpanMessage::Span(span) => batch.push(*span),
        }
        let left = until.saturating_duration_since(std::time::Instant::now());
        next = if batch.len() < BATCH_MAX { queued.recv_timeout(left).ok() } else { None };
    }
    (batch, None)
}

pub(super) fn spans_counter(result: &'static str) -> Counter {
    metrics::counter!("pointwork_trace_spans_total", "result" => result)
}
