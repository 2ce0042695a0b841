//! Sends the requests of operators' commands to the admin API of a running host, over HTTP and blocking.

mod address;
mod client;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub(super) use address::percent_encoded;
pub(super) use client::AdminClient;
