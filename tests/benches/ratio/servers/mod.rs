//! Starts the servers that are compared, and asks them over HTTP.

pub(crate) mod cluster;
pub(crate) mod http;
pub(crate) mod node;
