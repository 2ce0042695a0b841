//! Tests one contract for every transport: the one in memory, and the one to a real `redis-server`, which must be installed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod contract;
mod contract_tests;
mod hang;
mod in_memory;
mod over_redis;
mod redis_server;
mod rig;
mod subscriptions;
