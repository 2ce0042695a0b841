//! Compares several rules in one slot: each decides for its share of the units, and the outcomes of the units are
//! counted.
//!
//! A *unit* is a device (`settle`) or a user (`target`, `grace`, `presence`); it has one *arm*, by its [`bucket()`]. The first
//! arm is the *control*, the others are *treatments*. A unit is *exposed* by its first decision in the slot while the
//! experiment runs; what becomes of it is counted for a fixed span from then on, the *horizon*, and never changes after
//! that ([`Trial`]). Units that were never exposed are in no figure.
//!
//! - [`experiment`]: one experiment, and which arm decides for a unit.
//! - [`changes`]: all experiments of a cluster, one value that changes as a whole, and the changes that are allowed.
//! - [`bucket`](mod@bucket): which unit is in which arm.
//! - [`guardrail`]: the limits at which an experiment ends by itself.
//! - [`trial`]: the exposure and the outcomes of one device; part of its record.

pub mod bucket;
pub mod changes;
pub mod experiment;
pub mod guardrail;
pub mod trial;

pub use bucket::{BUCKETS, bucket};
pub use changes::{ChangeError, CreateError, Experiments};
pub use experiment::{
    ARMS_MAX, Arm, ArmModule, Experiment, ExperimentStatus, HORIZON_MS, HORIZON_MS_MAX, HORIZON_MS_MIN, NAME_BYTES_MAX,
    NoModule, Slot,
};
pub use guardrail::{Crossed, Guardrail, Guardrails, Tally};
pub use trial::{Exposure, Outcomes, Trial};

#[cfg(test)]
pub(crate) mod tests;
