//! Makes the TLS configuration of a listener from the contents of its files.
//!
//! rustls uses the same crypto library that verifies tokens (`aws-lc-rs`). Only HTTP/1.1 is offered, because a WebSocket begins with an
//! upgrade.

use std::{path::Path, sync::Arc};

use tokio_rustls::rustls::{
    self, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier},
};

use super::files::{CertificateFiles, FileContents, TlsError, certificates, key};

/// The crypto library.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

pub(super) fn server_config(files: &CertificateFiles, read: &FileContents) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = provider();
    let chain = certificates(&files.cert, &read.cert)?;
    let key = key(&files.key, &read.key)?;
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions().map_err(TlsError::Pair)?;
    let builder = match (&files.client_ca, &read.client_ca) {
        (Some(path), Some(pem)) => {
            // A client without a certificate is still asked for a token, and a probe has neither.
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities(path, pem)?), provider)
                .allow_unauthenticated()
                .build();
            let problem =
                |error: VerifierBuilderError| TlsError::Authorities { path: path.clone(), problem: error.to_string() };
            builder.with_client_cert_verifier(verifier.map_err(problem)?)
        }
        _ => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if files.client_ca.is_some() {
        // A resumed session would skip the check of the certificate.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    } else if let Ok(ticketer) = aws_lc_rs::Ticketer::new() {
        // Resumption spares the signature when many clients come back at once.
        config.ticketer = ticketer;
    }
    Ok(Arc::new(config))
}

/// The authorities in a file, all of them usable.
///
/// # Errors
/// [`TlsError::Pem`], [`TlsError::Authorities`].
pub(super) fn authorities(path: &Path, pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, pem)? {
        let problem =
            |error: rustls::Error| TlsError::Authorities { path: path.to_owned(), problem: error.to_string() };
        roots.add(certificate).map_err(problem)?;
    }
    Ok(roots)
}
