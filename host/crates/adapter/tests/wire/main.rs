//! Tests the codec with messages of Node's own adapter (`tests/corpus`), with random messages, and with broken ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod corpus;
mod expected;
mod malformed;
mod mutations;
mod random;
mod recorded;
