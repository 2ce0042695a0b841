//! A client's connection as a stream of bytes that ends by silence or by an abort.

use std::{
    future::Future,
    io,
    net::IpAddr,
    pin::Pin,
    sync::atomic::Ordering,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

use super::{handle::ConnectionHandle, read_ahead::ReadAhead, stream::ByteStream};
use crate::edge::admission::ConnectionPermit;

/// A client's connection.
pub(crate) struct TcpConnection {
    stream: ByteStream,
    handle: ConnectionHandle,
    silence_max: Duration,
    heard: Instant,
    /// Fires when the client may have been silent for too long. It is reset only then, and not with every packet.
    alarm: Pin<Box<Sleep>>,
    ahead: ReadAhead,
    /// The last write waits for room. A copy of what the handle says, because reading that costs more.
    is_stalled: bool,
    _permit: ConnectionPermit,
}

impl TcpConnection {
    pub(super) fn new(
        stream: ByteStream,
        local: Option<IpAddr>,
        silence_max: Duration,
        permit: ConnectionPermit,
    ) -> Self {
        let alarm = Box::pin(sleep(silence_max));
        let (handle, heard, ahead) = (ConnectionHandle::new(local), Instant::now(), ReadAhead::default());
        Self { stream, handle, silence_max, heard, alarm, ahead, is_stalled: false, _permit: permit }
    }

    /// A handle by which others abort this connection.
    pub(crate) fn handle(&self) -> ConnectionHandle {
        self.handle.clone()
    }

    /// Continues the TLS handshake, if there is one.
    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if ready!(self.stream.poll_handshake(cx))? {
            self.handle.0.is_certified.store(true, Ordering::Release);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_output<T>(
        &mut self,
        cx: &mut Context<'_>,
        send: impl FnOnce(Pin<&mut ByteStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.handle.0.writer.register(cx.waker());
        self.handle.check()?;
        let sent = send(Pin::new(&mut self.stream), cx);
        if sent.is_pending() != self.is_stalled {
            self.is_stalled = sent.is_pending();
            self.handle.set_stalled(self.is_stalled);
        }
        if sent.is_pending() {
            // After its ping timeout the engine no longer reads and only waits for this write.
            self.check_silence(cx);
            self.handle.check()?;
        }
        sent
    }

    /// Aborts the connection if the client has been silent for too long. Otherwise registers a wake-up for that time.
    fn check_silence(&mut self, cx: &mut Context<'_>) {
        while self.alarm.as_mut().poll(cx).is_ready() {
            let end = self.heard + self.silence_max;
            if end <= Instant::now() {
                metrics::counter!("pointwork_silent_connections_total").increment(1);
                return self.handle.abort();
            }
            self.alarm.as_mut().reset(end);
        }
    }
}

impl AsyncRead for TcpConnection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let connection = self.get_mut();
        connection.handle.0.reader.register(cx.waker());
        connection.check_silence(cx);
        connection.handle.check()?;
        ready!(connection.poll_handshake(cx))?;
        let before = buf.filled().len();
        ready!(connection.ahead.poll_read(&mut connection.stream, cx, buf))?;
        if buf.filled().len() > before {
            connection.heard = Instant::now();
            connection.handle.set_heard(connection.heard);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TcpConnection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_output(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_output(cx, |stream, cx| stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let connection = self.get_mut();
        if connection.stream.is_plain() {
            return Poll::Ready(Ok(())); // the kernel already has every byte
        }
        connection.poll_output(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let connection = self.get_mut();
        if connection.stream.is_plain() {
            return Pin::new(&mut connection.stream).poll_shutdown(cx);
        }
        connection.poll_output(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}

impl Drop for TcpConnection {
    fn drop(&mut self) {
        // Handles may outlive the connection.
        *self.handle.0.kept.lock() = None;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
    };

    use super::*;
    use crate::edge::{admission::ConnectionLimits, connection::ConnectionListener};

    async fn connected(silence_max: Duration) -> (TcpConnection, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (connection, _) =
            ConnectionListener::new(listener, silence_max, ConnectionLimits::of_operators(), None).accept().await;
        (connection, client)
    }

    #[tokio::test]
    async fn reading_ahead_changes_no_byte_and_keeps_no_memory() {
        let (mut connection, mut client) = connected(Duration::from_secs(3_600)).await;
        let sent: Vec<u8> = (0..200_003_u32).map(|index| (index % 251) as u8).collect();
        let expected = sent.clone();
        let sending = tokio::spawn(async move {
            client.write_all(&sent).await.unwrap();
            client
        });
        let mut got = Vec::new();
        let mut most_ahead = 0;
        while got.len() < expected.len() {
            let mut small = [0; 256];
            let size = connection.read(&mut small).await.unwrap();
            got.extend_from_slice(&small[..size]);
            most_ahead = most_ahead.max(connection.ahead.bytes.len());
        }
        assert!(got == expected);
        assert!(most_ahead > 256, "{most_ahead}");
        assert!(connection.ahead.bytes.is_empty());
        drop(sending.await.unwrap());
        assert_eq!(connection.read(&mut [0; 256]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn an_abort_ends_a_pending_read_and_write() {
        let (connection, _client) = connected(Duration::from_secs(3_600)).await;
        let handle = connection.handle.clone();
        let (mut reader, mut writer) = tokio::io::split(connection);
        let reading = tokio::spawn(async move { reader.read_u8().await });
        // More than the kernel takes, and nobody reads it.
        let writing = tokio::spawn(async move { writer.write_all(&vec![0; 64 << 20]).await });
        tokio::task::yield_now().await;
        handle.abort();
        assert_eq!(reading.await.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        assert_eq!(writing.await.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }

    #[tokio::test]
    async fn the_handle_reports_a_write_that_stalled() {
        let (mut connection, mut client) = connected(Duration::from_secs(3_600)).await;
        let handle = connection.handle();
        connection.write_all(b"little").await.unwrap();
        assert!(!handle.take_stalled());
        let much = vec![0; 64 << 20];
        let writing = tokio::spawn(async move { connection.write_all(&much).await.map(|()| connection) });
        while !handle.take_stalled() {
            tokio::task::yield_now().await;
        }
        assert!(handle.take_stalled(), "it still waits");
        client.read_exact(&mut vec![0; b"little".len() + (64 << 20)]).await.unwrap();
        let _line = writing.await.unwrap().unwrap();
        assert!(handle.take_stalled(), "it waited since it was asked");
        assert!(!handle.take_stalled());
    }

    #[tokio::test]
    async fn silence_ends_a_pending_write() {
        let (mut connection, _client) = connected(Duration::from_millis(50)).await;
        let written = connection.write_all(&vec![0; 64 << 20]).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }

    #[tokio::test]
    async fn silence_ends_a_connection_counted_from_the_last_byte() {
        let (mut connection, mut client) = connected(Duration::from_millis(50)).await;
        client.write_all(b"x").await.unwrap();
        assert_eq!(connection.read_u8().await.unwrap(), b'x');
        let heard = connection.heard;
        assert_eq!(connection.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        assert!(heard.elapsed() >= Duration::from_millis(50));
    }
}
