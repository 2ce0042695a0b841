//! Pointwork: a Socket.IO host whose routing decisions are WebAssembly policies, which an operator replaces while it serves.
//!
//! The rooms, from the bottom up:
//! - [`config`] and `driver`: settings; the lock, clock and timer of the pure machines.
//! - [`edge`], [`telemetry`], [`cluster`]: from a TCP connection to an event; log, metrics and traces; the other replicas.
//! - [`policies`]: which policy answers in each slot, and how operators change that.
//! - [`calls`] and [`devices`]: drive the machines of `pointwork-core`.
//! - [`sockets`] and [`operate`]: the namespaces that clients connect to; the admin API, probes and drain.
//! - [`server`] puts the rooms together and runs them. [`cli`] holds the commands for operators.

pub mod calls;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod devices;
mod driver;
pub mod edge;
pub mod operate;
pub mod policies;
pub mod server;
pub mod sockets;
pub mod telemetry;
