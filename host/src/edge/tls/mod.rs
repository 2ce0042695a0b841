//! TLS of the listeners, and of the commands for operators.

mod certificate_reload;
mod client;
mod files;

mod server_config;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub(crate) use self::{
    certificate_reload::ListenerCertificate,
    client::of_commands,
    files::{CertificateFiles, TlsError},
};
