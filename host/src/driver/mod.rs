//! Runs a pure machine of `pointwork-core`: locks it, feeds it, carries out its commands, and wakes it at its next deadline.

pub(crate) mod clock;
mod drive;
mod timer;

pub(crate) use self::{
    clock::Clock,
    drive::{Driver, Machine, keep_time},
};
