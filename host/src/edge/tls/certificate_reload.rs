//! The certificate of a listener, which is loaded again when its files change.
//!
//! The files are read at each look, which also notices links that move (a Kubernetes secret), renames, and clocks that stand still. A change
//! is loaded after two equal looks, because certificate and key are written one after the other.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{net::TcpStream, time::sleep};
use tokio_rustls::{Accept, TlsAcceptor, rustls::ServerConfig};

use super::{
    files::{CertificateFiles, TlsError},
    server_config::server_config,
};

/// The TLS configuration of a listener, from the last contents of its files that were usable.
#[derive(Clone)]
pub(crate) struct ListenerCertificate {
    listener: &'static str,
    current: Arc<Mutex<Arc<ServerConfig>>>,
}

impl ListenerCertificate {
    /// Reads the files, and looks for changes every `reload`. Call it within a Tokio runtime. `listener` is the label of metrics and log
    /// lines.
    ///
    /// # Errors
    /// See [`TlsError`]. If a later change cannot be used, it is logged and the previous certificate still serves.
    pub(crate) fn open(files: CertificateFiles, listener: &'static str, reload: Duration) -> Result<Self, TlsError> {
        let (config, digest) = files.read().and_then(|read| Ok((server_config(&files, &read)?, read.digest)))?;
        let current = Arc::new(Mutex::new(config));
        tokio::spawn(follow(current.clone(), listener, files, digest, reload));
        Ok(Self { listener, current })
    }

    /// Begins a handshake, which the caller must poll.
    pub(crate) fn accept(&self, stream: TcpStream) -> Accept<TcpStream> {
        let config = self.current.lock().clone();
        TlsAcceptor::from(config).accept(stream)
    }

    /// The label of the listener.
    pub(crate) fn listener(&self) -> &'static str {
        self.listener
    }
}

/// The digest of the files at one look, or why they cannot be read.
type FileState = Result<[u8; 32], String>;

/// Looks at the files for as long as the runtime lives.
async fn follow(
    current: Arc<Mutex<Arc<ServerConfig>>>,
    listener: &'static str,
    files: CertificateFiles,
    loaded: [u8; 32],
    every: Duration,
) {
    // The state that was last loaded or refused, and the state at the last look if it differs.
    let (mut settled, mut last): (FileState, Option<FileState>) = (Ok(loaded), None);
    loop {
        sleep(every).await;
        let looking = files.clone();
        let Ok(read) = tokio::task::spawn_blocking(move || looking.read()).await else { continue };
        let seen = read.as_ref().map(|read| read.digest).map_err(ToString::to_string);
        if seen == settled {
            last = None;
        } else if last.as_ref() != Some(&seen) {
            last = Some(seen);
        } else {
            replace(&current, listener, read.and_then(|read| server_config(&files, &read)));
            (settled, last) = (seen, None);
        }
    }
}

fn replace(current: &Mutex<Arc<ServerConfig>>, listener: &'static str, loaded: Result<Arc<ServerConfig>, TlsError>) {
    let result = match loaded {
        Ok(config) => {
            *current.lock() = config;
            tracing::info!(listener, "the certificate was loaded again");
            "loaded"
        }
        Err(error) => {
            tracing::warn!(listener, %error, "the certificate was not loaded again, the one before goes on serving");
            "refused"
        }
    };
    metrics::counter!("pointwork_tls_reloads_total", "listener" => listener, "result" => result).increment(1);
}
