//! Chooses the arm of a running experiment for each device and user, and collects what the arms' decisions lead to.

mod outbox;
mod running;

pub(crate) use self::{
    outbox::{DisagreementCell, ERROR_KINDS, EndedCall, ExperimentOutbox, UserDelta},
    running::{ArmRule, Assignments, RunningExperiment, unit_of},
};
