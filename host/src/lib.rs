//! Pointwork: a Socket.IO host whose routing decisions are WebAssembly policies, swapped while it serves.
//!
//! `main` reads the command line and the settings and hands them to [`server::run`], which puts the parts together:
//! [`root`] takes what clients send, [`rpc`] feeds it to the call machine of `pointwork-core`, [`policies`] asks the
//! engine of `pointwork-policy` and falls back to the native rules, [`policy_dir`] loads what lies in the policy
//! directory, and [`admin`] is the operator's and the backend's door. [`device`] does for devices' sessions what [`rpc`] does for calls.

pub mod admin;
pub mod admin_client;
mod admission;
mod alarm;
pub mod auth;
mod caught;
pub mod cli;
mod clock;
pub mod cluster;
pub mod config;
mod deliver;
pub mod device;
mod drain;
pub mod exp;
pub mod experiments;
mod gate;
mod head;
pub mod identity;
pub mod io;
mod line;
mod lock;
pub mod memory;
pub mod policies;
pub mod policy_check;
pub mod policy_dir;
mod policy_file;
pub mod policy_record;
pub mod policy_replay;
pub mod policy_rollout;
pub mod policy_simulate;
pub mod policy_test;
mod probes;
pub mod questions;
pub mod records;
#[cfg(test)]
mod redis_server;
pub mod rollout;
pub mod root;
pub mod rpc;
mod serve;
pub mod server;
mod shed;
mod signals;
pub mod statistics;
pub mod telemetry;
mod tls;
pub mod token;
mod wire;
