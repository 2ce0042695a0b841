//! TLS of the listeners, and of the commands for operators.

mod client;
mod files;
mod listener;
mod server_config;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub(crate) use self::{
    client::of_commands,
    files::{CertificateFiles, TlsError},
    listener::Tls,
};
