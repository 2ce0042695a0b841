//! The log, metrics and traces. None of them ever contains a token, the parameters of a call or the content of a broadcast.

mod catalog;
mod error;
mod fixed_histogram;
mod label_values;
mod log;
mod methods;
mod metrics;
mod metrics_page;
mod process;
mod socket_metrics;
mod trace;

pub use self::{
    error::TelemetryError, log::start_log, methods::MethodLabels, metrics::Metrics, metrics_page::MetricsPage,
    trace::Tracer,
};
pub(crate) use self::{
    fixed_histogram::{DECISION_NS, FixedHistogram},
    methods::{CallOutcome, MethodLabel, MethodMetrics},
    socket_metrics::{ClientScope, EventKind, socket_metrics},
    trace::{CallSpan, TraceContext},
};
