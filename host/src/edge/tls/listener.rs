//! The certificate of a listener, and how a connection begins with it.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio_rustls::{Accept, TlsAcceptor, rustls::ServerConfig};

use super::{error::TlsError, files::Files, reload, server_config::server_config};

/// The TLS configuration of a listener, from the last contents of its files that were usable.
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
        let current = Arc::new(Mutex::new(config));
        tokio::spawn(reload::follow(current.clone(), listener, files, digest, reload));
        Ok(Self { listener, current })
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
}
