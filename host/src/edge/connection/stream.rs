//! What a line goes over: TCP as it is, or TLS on it.
//!
//! The handshake is a part of the first read, so it is carried out by the connection's own task: whoever accepts connections
//! never waits for one, and whatever ends a connection that says nothing ends it, too.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{Accept, server::TlsStream};

/// A stream of bytes. What TLS needs is boxed: a plain one is no larger for it.
pub(super) enum Stream {
    Plain(TcpStream),
    /// With the label of its listener.
    Shaking(Box<(Accept<TcpStream>, &'static str)>),
    Tls(Box<TlsStream<TcpStream>>),
    /// The handshake failed.
    Failed,
}

impl Stream {
    /// Goes on with the handshake, if there is one. True when it has just been completed and the client showed a certificate that
    /// was verified.
    pub(super) fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let Self::Shaking(shaking) = self else { return Poll::Ready(Ok(false)) };
        let (accept, listener) = &mut **shaking;
        match ready!(Pin::new(accept).poll(cx)) {
            Ok(stream) => {
                let is_certified = stream.get_ref().1.peer_certificates().is_some();
                *self = Self::Tls(Box::new(stream));
                Poll::Ready(Ok(is_certified))
            }
            Err(error) => {
                metrics::counter!("pointwork_tls_handshakes_failed_total", "listener" => *listener).increment(1);
                tracing::debug!(listener, %error, "a TLS handshake failed");
                *self = Self::Failed;
                Poll::Ready(Err(error))
            }
        }
    }

    /// Whether what was taken to be written is the kernel's already. With TLS it may wait for a flush.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }
}

/// Before the handshake nothing is read or written but by [`Stream::poll_open`].
fn closed() -> io::Error {
    io::ErrorKind::ConnectionAborted.into()
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(cx, buf),
            Self::Shaking(_) | Self::Failed => Poll::Ready(Err(closed())),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write(cx, bytes),
            Self::Shaking(_) | Self::Failed => Poll::Ready(Err(closed())),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(cx, slices),
            Self::Shaking(_) | Self::Failed => Poll::Ready(Err(closed())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_flush(cx),
            Self::Shaking(_) | Self::Failed => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
            Self::Shaking(_) | Self::Failed => Poll::Ready(Ok(())),
        }
    }
}
