//! Accepts TCP connections within the limits of the listener.

use std::{io::Write, net::SocketAddr, time::Duration};

use axum::serve::Listener;
use tokio::net::TcpListener;

use super::{stream::ByteStream, tcp_connection::TcpConnection};
use crate::edge::{admission::ConnectionLimits, tls::ListenerCertificate};

/// The answer to a connection over a limit, so that a load balancer tries another replica. A TLS connection gets none: the handshake comes first.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Accepts connections as [`TcpConnection`]s.
pub(crate) struct ConnectionListener {
    listener: TcpListener,
    silence_max: Duration,
    limits: ConnectionLimits,
    tls: Option<ListenerCertificate>,
}

impl ConnectionListener {
    /// `silence_max`: a connection ends after this time without a byte from the client. Without `tls` connections are plain.
    pub(crate) fn new(
        listener: TcpListener,
        silence_max: Duration,
        limits: ConnectionLimits,
        tls: Option<ListenerCertificate>,
    ) -> Self {
        Self { listener, silence_max, limits, tls }
    }

    /// The limits on connections.
    pub(crate) fn limits(&self) -> &ConnectionLimits {
        &self.limits
    }

    /// The next connection within the limits.
    pub(crate) async fn accept(&mut self) -> (TcpConnection, SocketAddr) {
        loop {
            let (stream, peer) = Listener::accept(&mut self.listener).await;
            let Some(permit) = self.limits.admit(peer.ip()) else {
                if self.tls.is_none() {
                    // Nothing was sent before, so the kernel has room for the answer. A client that has closed does not need it.
                    let _ = stream.into_std().and_then(|mut stream| stream.write_all(BUSY));
                }
                continue;
            };
            // Packets are small, and clients wait for them.
            let _ = stream.set_nodelay(true);
            let local = stream.local_addr().ok().map(|local| local.ip());
            let stream = match &self.tls {
                None => ByteStream::Plain(stream),
                Some(tls) => ByteStream::Handshaking(Box::new((tls.accept(stream), tls.listener()))),
            };
            return (TcpConnection::new(stream, local, self.silence_max, permit), peer);
        }
    }
}
