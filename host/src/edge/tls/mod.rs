//! TLS of a listener: its certificate from PEM files, and how a connection begins with it.
//!
//! One crypto library: what rustls uses here is what verifies tokens (`aws-lc-rs`). HTTP/1.1 alone is offered, for a WebSocket
//! begins by an upgrade.

mod client;
mod files;
mod reload;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use parking_lot::Mutex;
use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::net::TcpStream;
use tokio_rustls::{
    Accept, TlsAcceptor,
    rustls::{
        self, RootCertStore, ServerConfig,
        crypto::{CryptoProvider, aws_lc_rs},
        server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier},
    },
};

use self::files::{certificates, key};
pub(crate) use self::{client::of_commands, files::Files};

/// Why there is no TLS with these files.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not the PEM that it should be.
    #[error("{} holds no {what} in PEM{problem}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
        /// What the parser says, which is nothing of a key; empty when there was no such section.
        problem: String,
    },
    /// The certificate and the key are not of each other, or not of a kind that can be used.
    #[error("the certificate and its key cannot be used: {0}")]
    Pair(rustls::Error),
    /// The certificates that are to vouch for others cannot.
    #[error("{} cannot vouch for anybody: {problem}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
}

/// What a listener speaks TLS with: what its files held when they were last good.
#[derive(Clone)]
pub(crate) struct Tls {
    listener: &'static str,
    current: Arc<Mutex<Arc<ServerConfig>>>,
}

impl Tls {
    /// Reads the files, and from here on looks every `reload` whether they have changed. Call it within a Tokio runtime.
    /// `listener` is the label of metrics and log lines.
    ///
    /// # Errors
    /// See [`TlsError`]; later, a file that is no good is told, and what was read before goes on serving.
    pub(crate) fn open(files: Files, listener: &'static str, reload: Duration) -> Result<Self, TlsError> {
        let (config, digest) = files.read().and_then(|read| Ok((server_config(&files, &read)?, read.digest)))?;
        let tls = Self { listener, current: Arc::new(Mutex::new(config)) };
        tokio::spawn(reload::follow(tls.clone(), files, digest, reload));
        Ok(tls)
    }

    /// Begins a handshake. It is carried out by whoever polls it.
    pub(crate) fn accept(&self, stream: TcpStream) -> Accept<TcpStream> {
        let config = self.current.lock().clone();
        TlsAcceptor::from(config).accept(stream)
    }

    /// The label of the listener.
    pub(crate) fn listener(&self) -> &'static str {
        self.listener
    }

    fn serve_with(&self, config: Arc<ServerConfig>) {
        *self.current.lock() = config;
    }
}

/// The crypto library.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn server_config(files: &Files, read: &files::Read) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = provider();
    let chain = certificates(&files.cert, &read.cert)?;
    let key = key(&files.key, &read.key)?;
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions().map_err(TlsError::Pair)?;
    let builder = match (&files.client_ca, &read.client_ca) {
        (Some(path), Some(pem)) => {
            // Without a certificate a client gets as far as the token: a probe has neither.
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
        // A client is known by its certificate each time, not by a session of one that was good once.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    } else if let Ok(ticketer) = aws_lc_rs::Ticketer::new() {
        // Clients that come back all at once are spared the signature.
        config.ticketer = ticketer;
    }
    Ok(Arc::new(config))
}

/// Those who vouch for others, all of them usable.
///
/// # Errors
/// [`TlsError::Pem`], [`TlsError::Authorities`].
fn authorities(path: &std::path::Path, pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, pem)? {
        let problem =
            |error: rustls::Error| TlsError::Authorities { path: path.to_owned(), problem: error.to_string() };
        roots.add(certificate).map_err(problem)?;
    }
    Ok(roots)
}
