//! The namespaces that clients connect to: `/`, `/device` and `/dashboard`.

pub(crate) mod dashboard;
pub(crate) mod device;
pub mod root;
