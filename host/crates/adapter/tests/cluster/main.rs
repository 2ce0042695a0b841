//! Clusters of many replicas in one process, by the transport in memory and under simulated time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod churn;
mod crowd;
mod directed;
mod fleet;
mod following;
mod line;
mod liveness;
mod outage;
mod recovering;
mod sharing;
mod sockets;
mod station;
mod stream;
