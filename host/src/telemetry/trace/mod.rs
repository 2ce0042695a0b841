//! Spans of calls, for a collector that speaks OTLP over HTTP: one of the call at its caller's replica, and one of what another
//! replica had its daemon do, its child. They hold the method, who was asked, how it ended and how long it waited; never
//! parameters, results or tokens.
//!
//! A span that ends goes into a bounded queue; a thread of its own sends what is there. What finds no room is dropped and counted:
//! a call never waits for a collector. Without a collector there is no tracer, and a call pays for finding that out.

mod call_span;
mod context;
mod export;
mod send;
mod span;
mod tracer;

pub use self::tracer::Tracer;
pub(crate) use self::{call_span::CallSpan, context::TraceContext};
