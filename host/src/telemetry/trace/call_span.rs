//! The spans of a call: one at the caller's replica, and one at the replica of its daemon.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use opentelemetry::{KeyValue, TraceId};

use super::{
    span::{EndedSpan, TraceContext, span_id},
    tracer::Tracer,
};

/// The longest method in a span. A longer one is truncated.
const METHOD_BYTES_MAX: usize = 256;

/// The span of a call.
pub(crate) struct CallSpan {
    tracer: Arc<Tracer>,
    context: TraceContext,
    began: SystemTime,
    target: Option<CallTarget>,
}

/// The daemon that a call's request was sent to.
struct CallTarget {
    /// `None` for a daemon of this replica.
    replica: Option<Arc<str>>,
    waited: Duration,
}

impl Tracer {
    /// Begins the span of a call that has arrived. `None` if the call is not sampled.
    pub(crate) fn call(self: &Arc<Self>) -> Option<CallSpan> {
        self.is_sampled().then(|| CallSpan {
            tracer: self.clone(),
            context: TraceContext { trace: TraceId::from(fastrand::u128(1..)), span: span_id() },
            began: SystemTime::now(),
            target: None,
        })
    }

    /// Begins the span of a request from another replica. `None` if its `traceparent` cannot be read or is not sampled. The returned
    /// function ends the span; its argument says whether the daemon answered.
    pub(crate) fn request(self: &Arc<Self>, traceparent: &str) -> Option<impl FnOnce(bool) + Send + use<>> {
        let parent = TraceContext::read(traceparent)?;
        let (tracer, began) = (self.clone(), SystemTime::now());
        Some(move |is_answered: bool| {
            tracer.enqueue(EndedSpan {
                name: "rpc.request",
                context: TraceContext { trace: parent.trace, span: span_id() },
                parent: Some(parent.span),
                began,
                ended: SystemTime::now(),
                is_error: !is_answered,
                attributes: vec![KeyValue::new("pointwork.answered", is_answered)],
            });
        })
    }
}

impl CallSpan {
    /// Notes that the request was sent to a daemon of `replica`, or of this replica if `None`.
    pub(crate) fn sent(&mut self, replica: Option<&Arc<str>>, waited: Duration) {
        self.target = Some(CallTarget { replica: replica.cloned(), waited });
    }

    /// The context to send along with the request.
    pub(crate) fn context(&self) -> TraceContext {
        self.context
    }

    /// Ends the span. `is_error` says whether the caller received an error.
    pub(crate) fn end(self, method: &str, result: &'static str, is_error: bool) {
        let ended = SystemTime::now();
        let took = || ended.duration_since(self.began).unwrap_or_default();
        let waited = self.target.as_ref().map_or_else(took, |target| target.waited);
        let mut attributes = vec![
            KeyValue::new("rpc.method", truncate(method).to_owned()),
            KeyValue::new("pointwork.result", result),
            KeyValue::new("pointwork.wait_ms", waited.as_secs_f64() * 1_000.0),
        ];
        if let Some(CallTarget { replica, .. }) = self.target {
            let replica = replica.map_or_else(|| "local".into(), opentelemetry::Value::from);
            attributes.push(KeyValue::new("pointwork.target_replica", replica));
        }
        let Self { tracer, context, began, .. } = self;
        tracer.enqueue(EndedSpan { name: "rpc.call", context, parent: None, began, ended, is_error, attributes });
    }
}

fn truncate(method: &str) -> &str {
    &method[..method.floor_char_boundary(METHOD_BYTES_MAX)]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn truncates_a_long_method_between_characters() {
        assert_eq!(truncate("bash"), "bash");
        assert_eq!(truncate(&"é".repeat(200)).len(), 256);
        assert_eq!(truncate(&format!("a{}", "é".repeat(200))).len(), 255);
    }
}
