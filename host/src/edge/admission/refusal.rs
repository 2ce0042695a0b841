//! What happens to connections over a limit: an error, and a metric.

/// A limit has been reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitReached;

pub(super) fn refused_counter(reason: &'static str) -> metrics::Counter {
    metrics::counter!("pointwork_connections_refused_total", "reason" => reason)
}
