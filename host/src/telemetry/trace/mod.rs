//! Exports spans of calls to a collector that accepts OTLP over HTTP.
//!
//! A call has a span at its caller's replica, and a child span at its daemon's replica if that is another one. Spans contain the method,
//! the target, the outcome and the wait, but never parameters, results or tokens.
//!
//! Ended spans wait in a bounded queue for a thread that sends them. If the queue is full, spans are dropped and counted, so a call never
//! waits for a collector.

mod call_span;
mod export;
mod send;
mod span;
mod tracer;

pub use self::tracer::Tracer;
pub(crate) use self::{call_span::CallSpan, span::TraceContext};
