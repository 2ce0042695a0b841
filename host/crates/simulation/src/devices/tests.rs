//! Tests of worlds of devices: random schedules in which everything goes wrong that can, and storms of opens by name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod conditions;
mod flaws;
mod operators;
mod quiet;
mod random_schedules;
mod schedule;
#[allow(unused_imports, reason = "worlds of devices have another source of random numbers")]
#[path = "../../../core/tests/seeded/mod.rs"]
mod seeded;
mod storms;
mod trials;

pub(super) use flaws::DeviceFlaw;
pub(super) use trials::TrialCounts;
