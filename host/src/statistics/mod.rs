//! The statistics of experiments: pure functions over the units that were exposed.
//!
//! One [`Unit`] is one device (`settle`) or user (the slots of the RPC path), with one number an [`Outcome`]; a [`Study`] is all
//! that a report is made of.

pub mod outcome;
pub mod report;
pub mod unit;

pub use outcome::{Direction, Measure, Outcome};
pub use report::{Disagreement, Guardrail, Study};
pub use unit::{Unit, WHOLE};
