//! Tests that the simulation finds each mistake that the call machine is made to make.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod flawed_machine;
mod flaws;

pub(super) use flawed_machine::{Flaw, FlawedMachine};
