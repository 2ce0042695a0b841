//! Which arm of a running experiment decides for a device or a user, and what its decisions leave to be counted.

mod outbox;
mod running;

pub(crate) use self::{
    outbox::{Answered, Cell, ERROR_KINDS, Outbox, UserDelta},
    running::{Assignments, Rule, Running, unit_of},
};
