//! Reads PEM files of certificates and keys.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tokio_rustls::rustls::{
    self,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
};

/// The largest file. A bundle of all public roots has a quarter of that.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why TLS is impossible with these files.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// A file does not contain the PEM section that it should.
    #[error("{} holds no {what} in PEM{problem}", path.display())]
    Pem {
        path: PathBuf,
        what: &'static str,
        /// Never a part of a key. Empty if the file has no such section.
        problem: String,
    },
    /// The certificate and the key do not belong together, or their kind cannot be used.
    #[error("the certificate and its key cannot be used: {0}")]
    Pair(rustls::Error),
    /// A certificate cannot be used as an authority.
    #[error("{} cannot vouch for anybody: {problem}", path.display())]
    Authorities { path: PathBuf, problem: String },
}

/// Where the certificate and its key are.
#[derive(Clone, Debug)]
pub(crate) struct CertificateFiles {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
    /// The authorities that sign the certificates of clients.
    pub(crate) client_ca: Option<PathBuf>,
}

/// The contents of the files at one time.
pub(super) struct FileContents {
    pub(super) cert: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) client_ca: Option<Vec<u8>>,
    pub(super) digest: [u8; 32],
}

impl CertificateFiles {
    /// Reads them all.
    pub(super) fn read(&self) -> Result<FileContents, TlsError> {
        let (cert, key) = (read(&self.cert)?, read(&self.key)?);
        let client_ca = self.client_ca.as_deref().map(read).transpose()?;
        let mut hash = Sha256::new();
        for part in [&cert, &key].into_iter().chain(&client_ca) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Ok(FileContents { cert, key, client_ca, digest: hash.finalize().into() })
    }
}

/// The whole of a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let of = |source| TlsError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(of)?;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, FILE_BYTES_MAX + 1), &mut bytes).map_err(of)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(of(std::io::Error::other("it has more than 1 MiB")));
    }
    Ok(bytes)
}

/// The certificates of `pem`, at least one; `path` is for the error.
pub(super) fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|error| wrong(path, "certificate", &error))?;
    if certificates.is_empty() {
        return Err(wrong(path, "certificate", &pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

/// The first private key of `pem`; `path` is for the error.
pub(super) fn key(path: &Path, pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| wrong(path, "private key", &error))
}

/// The parser's own text is not used, because it may quote a line of a key.
fn wrong(path: &Path, what: &'static str, error: &pem::Error) -> TlsError {
    let problem = match error {
        pem::Error::NoItemsFound => String::new(),
        pem::Error::MissingSectionEnd { .. } => ": a section does not end".to_owned(),
        pem::Error::IllegalSectionStart { .. } => ": a section does not begin as one".to_owned(),
        pem::Error::Base64Decode(_) => ": a section is not Base64".to_owned(),
        _ => ": it cannot be parsed".to_owned(),
    };
    TlsError::Pem { path: path.to_owned(), what, problem }
}
