//! Starts and ends the thread that exports spans, and puts ended spans into its queue.

use std::{
    fmt,
    sync::{
        Arc,
        mpsc::{self, SyncSender},
    },
    thread,
    time::Duration,
};

use metrics::Counter;

use super::{
    export::Exporter,
    send::{SpanMessage, send, spans_counter},
    span::EndedSpan,
};
use crate::config::{Share, TraceConfig};

/// How long [`Tracer::close`] waits beyond the timeout of one request.
const CLOSE_EXTRA: Duration = Duration::from_secs(1);
/// How much of that timeout counts. The wait comes after the drain, so it must be short.
const CLOSE_REQUEST_MAX: Duration = Duration::from_secs(2);

/// Samples calls and exports their spans.
pub struct Tracer {
    sample: Share,
    timeout: Duration,
    queue: SyncSender<SpanMessage>,
    dropped: Counter,
}

impl Tracer {
    /// Starts the thread that exports spans. `None` if the settings name no collector. `replica` identifies this process.
    ///
    /// # Errors
    /// When the collector's address cannot be used, or the thread cannot start.
    pub fn start(config: &TraceConfig, replica: &str) -> anyhow::Result<Option<Arc<Self>>> {
        let Some(endpoint) = &config.otlp_endpoint else { return Ok(None) };
        let timeout = config.timeout_ms.as_millis();
        let exporter = Exporter::new(endpoint.as_str(), timeout, &config.service_name, replica)?;
        let (queue, queued) = mpsc::sync_channel(config.queue_spans_max.as_usize());
        thread::Builder::new().name("spans".to_owned()).spawn(move || send(&exporter, &queued))?;
        Ok(Some(Arc::new(Self { sample: config.sample, timeout, queue, dropped: spans_counter("dropped") })))
    }

    pub(super) fn is_sampled(&self) -> bool {
        self.sample.holds(fastrand::u64(..))
    }

    /// Puts the span into the queue, or counts it as dropped if the queue is full.
    pub(super) fn enqueue(&self, span: EndedSpan) {
        if self.queue.try_send(SpanMessage::Span(Box::new(span))).is_err() {
            self.dropped.increment(1);
        }
    }

    fn close_timeout(&self) -> Duration {
        self.timeout.min(CLOSE_REQUEST_MAX) + CLOSE_EXTRA
    }

    /// Waits until the queued spans are sent or have failed, for at most 3 s.
    pub async fn close(self: Arc<Self>) {
        let waited = tokio::task::spawn_blocking(move || {
            let (flushed, wait) = mpsc::sync_channel(1);
            let is_queued = self.queue.try_send(SpanMessage::Flush(flushed)).is_ok();
            is_queued && wait.recv_timeout(self.close_timeout()).is_ok()
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{
        super::send::{BATCH_MAX, batch},
        *,
    };

    #[test]
    fn drops_spans_when_the_queue_is_full_and_bounds_a_batch() {
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
    fn a_slow_collector_does_not_delay_the_shutdown() {
        let close_timeout = |timeout| {
            let (sample, dropped) = (Share::new(1.0).unwrap(), Counter::noop());
            Tracer { sample, timeout, queue: mpsc::sync_channel(1).0, dropped }.close_timeout()
        };
        let limits = [Duration::from_millis(100), Duration::from_secs(60)].map(close_timeout);
        assert_eq!(limits, [Duration::from_millis(1_100), Duration::from_secs(3)]);
    }
}
