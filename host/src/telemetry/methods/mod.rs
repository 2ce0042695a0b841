//! The metrics of calls, by method.

mod method_metrics;
mod outcome;
#[cfg(test)]
mod tests;

pub use self::method_metrics::MethodLabels;
pub(crate) use self::{
    method_metrics::{MethodLabel, MethodMetrics},
    outcome::CallOutcome,
};
