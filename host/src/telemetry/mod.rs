//! What the host tells about itself: a log, metrics, and spans for a collector. None of them ever holds a token, a call's
//! parameters or what is broadcast.

mod buckets;
mod catalog;
mod log;
mod meters;
mod methods;
mod metrics;
mod page;
mod process;
mod trace;

pub(crate) use self::{
    buckets::{Buckets, DECISION_NS},
    meters::{ClientScope, EventKind, meters},
    methods::{Ended, Label, Methods},
    trace::{CallSpan, TraceContext},
};
pub use self::{log::start_log, methods::MethodLabels, metrics::Metrics, page::Page, trace::Tracer};

/// Why the host cannot tell about itself.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The log filter cannot be parsed; a loaded configuration has none such.
    #[error("setting `log.filter` cannot be parsed")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// The process has a log already.
    #[error("the log is set up already")]
    Log(#[from] tracing_subscriber::util::TryInitError),
    /// The process has metrics already.
    #[error("the metrics cannot be set up")]
    Metrics(#[from] metrics_exporter_prometheus::BuildError),
}
