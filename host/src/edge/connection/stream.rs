//! The bytes of a connection: plain TCP, or TLS over TCP.
//!
//! The TLS handshake is part of the first read. So the connection's own task carries it out, accepting never waits for it, and the
//! limits on silent connections apply to it.

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

/// A stream of bytes. The TLS variants are boxed so that a plain stream stays small.
pub(super) enum ByteStream {
    Plain(TcpStream),
    /// With the label of its listener.
    Handshaking(Box<(Accept<TcpStream>, &'static str)>),
    Tls(Box<TlsStream<TcpStream>>),
    /// The handshake failed.
    Failed,
}

/// What plain TCP and TLS have in common.
trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl ByteStream {
    /// Continues the handshake, if there is one. True if it has just completed and the client showed a certificate that was verified.
    pub(super) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let Self::Handshaking(handshaking) = self else { return Poll::Ready(Ok(false)) };
        let (accept, listener) = &mut **handshaking;
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

    /// Whether written bytes are with the kernel at once. With TLS they may wait for a flush.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    /// Before the handshake is complete, only [`poll_handshake`](Self::poll_handshake) reads and writes.
    fn established(&mut self) -> io::Result<Pin<&mut dyn Duplex>> {
        match self {
            Self::Plain(stream) => Ok(Pin::new(stream)),
            Self::Tls(stream) => Ok(Pin::new(&mut **stream)),
            Self::Handshaking(_) | Self::Failed => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

impl AsyncRead for ByteStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.get_mut().established()?.poll_read(cx, buf)
    }
}

impl AsyncWrite for ByteStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().established()?.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().established()?.poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().established().map_or(Poll::Ready(Ok(())), |stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().established().map_or(Poll::Ready(Ok(())), |stream| stream.poll_shutdown(cx))
    }
}
