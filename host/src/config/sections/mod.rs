//! The sections of the settings, one file each.

pub(super) mod admin;
pub(super) mod auth;
pub(super) mod device;
pub(super) mod drain;
pub(super) mod listen;
pub(super) mod log;
pub(super) mod metrics;
pub(super) mod policy;
pub(super) mod records;
pub(super) mod redis;
pub(super) mod rpc;
pub(super) mod tls;
pub(super) mod trace;
