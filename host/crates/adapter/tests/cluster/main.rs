//! Clusters of many replicas in one process, with the transport in memory and simulated time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod following;
mod liveness;
mod lost_entries;
mod message_counts;
mod outage;
mod reconnecting_clients;
mod recovery;
mod rig;
mod rooms_and_sockets;
