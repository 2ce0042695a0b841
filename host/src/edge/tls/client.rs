//! TLS of the commands for operators.

use std::path::Path;

use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig, TlsProvider};

use super::{
    files::{TlsError, certificates, key, read},
    server_config::{authorities, provider},
};
use crate::config::AdminConfig;

/// The TLS configuration from `admin.ca`, or the roots of this machine, and `admin.client_cert`.
///
/// # Errors
/// When a file cannot be read or used.
pub(crate) fn of_commands(admin: &AdminConfig) -> Result<TlsConfig, TlsError> {
    let roots = match &admin.ca {
        Some(path) => {
            let pem = read(path)?;
            authorities(path, &pem)?; // the client ignores unusable ones, and then trusts nobody
            certificates(path, &pem)?
        }
        None => rustls_native_certs::load_native_certs().certs,
    };
    let roots: Vec<_> = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
    let shown = match (&admin.client_cert, &admin.client_key) {
        (Some(cert), Some(key)) => Some(shown(cert, key)?),
        _ => None,
    };
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(provider())
        .root_certs(RootCerts::new_with_certs(&roots))
        .client_cert(shown)
        .build())
}

fn shown(cert_file: &Path, key_file: &Path) -> Result<ClientCert, TlsError> {
    let chain = certificates(cert_file, &read(cert_file)?)?;
    let pem = read(key_file)?;
    let key = key(key_file, &pem)?;
    // The client panics on a key that does not belong to the certificate.
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_root_certificates(RootCertStore::empty())
        .with_client_auth_cert(chain.clone(), key)
        .map_err(TlsError::Pair)?;
    let chain: Vec<_> = chain.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    let problem = |_| TlsError::Pem { path: key_file.to_owned(), what: "private key", problem: String::new() };
    Ok(ClientCert::new_with_certs(&chain, PrivateKey::from_pem(&pem).map_err(problem)?))
}
