//! The statistics of experiments: pure functions over the units that were exposed.
//!
//! One [`Unit`] is one device (`settle`) or user (the slots of the RPC path), with one number an [`Outcome`]. [`sample_ratio`] says
//! whether the split can be believed at all, [`sequence`] compares two arms by an interval that holds at every look, and
//! [`report()`] puts both together; its display is how operators read it.

pub mod outcome;
pub mod report;
pub mod sample_ratio;
pub mod sequence;
pub mod study;
mod table;
pub mod unit;

pub use outcome::{Direction, Measure, Outcome};
pub use report::{EffectVerdict, ExperimentReport, report};
pub use study::{Disagreement, GuardrailReading, Study};
pub use unit::{Unit, WHOLE};
