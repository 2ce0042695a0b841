//! Checks, tests, replays and simulates policies without a host.
//!
//! Each command has its arguments and one function: [`check`](check::check), [`test`](test::test), [`replay`](replay::replay) and
//! [`simulate`](simulate::simulate). [`questions`] makes up random questions for tests.

pub mod check;
pub mod decision_costs;
mod offline_policy;
pub mod questions;
pub mod replay;
pub mod simulate;
pub mod test;
mod verdict_kind;
