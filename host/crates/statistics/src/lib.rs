//! Computes the statistics of experiments. All functions are pure functions over the exposed units.
//!
//! A [`Unit`] is a device (in the slot `settle`) or a user (in the other slots), with one number for each [`MeasuredOutcome`].
//! [`sample_ratio`] checks whether the units are split as the weights say. [`sequence`] compares two arms by an interval that holds
//! at every look. [`report()`] combines both; operators read its `Display`.

pub mod outcome;
pub mod report;
pub mod sample_ratio;
pub mod sequence;
pub mod study;
mod table;
pub mod unit;

pub use outcome::{Direction, MeasuredOutcome, OutcomeMeasure};
pub use report::{EffectVerdict, ExperimentReport, report};
pub use study::{Disagreement, GuardrailReading, Study};
pub use unit::{Unit, WHOLE};
