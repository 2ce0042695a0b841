//! The errors of certificates and keys in files.

use std::path::PathBuf;

use tokio_rustls::rustls;

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
