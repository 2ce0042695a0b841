//! The codec against messages of Node's own adapter (`tests/corpus`), against made-up ones, and against broken ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod corpus;
mod expected;
mod malformed;
mod mutations;
mod random;
mod recorded;
