//! TLS of the listeners, and of the commands for operators.

mod client;
mod error;
mod files;
mod listener;
mod reload;
mod server_config;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub(crate) use self::{client::of_commands, error::TlsError, files::Files, listener::Tls};
