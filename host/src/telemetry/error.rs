//! The errors of starting the log and the metrics.

/// Why the log or the metrics cannot start.
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
