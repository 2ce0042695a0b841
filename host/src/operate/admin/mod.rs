//! The admin API: policies, experiments, devices, metrics, and broadcasts from the application's backend.

mod access;
mod cluster_policies;
mod devices;
mod emit;
mod experiments;
mod metrics;
mod policies;
mod records;
mod router;
mod state;

pub(crate) use self::{access::Operator, router::router};
pub use self::{
    cluster_policies::{CONFIG_HEADER, DIGEST_HEADER, ascii},
    state::Admin,
};
