//! What the host tells about itself: a log, metrics, and spans for a collector. None of them ever holds a token, a call's
//! parameters or what is broadcast.

mod buckets;
mod catalog;
mod error;
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
pub use self::{
    error::TelemetryError, log::start_log, methods::MethodLabels, metrics::Metrics, page::Page, trace::Tracer,
};
