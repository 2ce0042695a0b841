//! A client's TCP connection, which ends by itself when nothing is heard of the client, and which the host can cut.
//!
//! The engine has a ping timeout of its own, but it takes effect between two packets only: a client that reads slowly, or not
//! at all, holds up the write of one for as long as it likes, and with it the news that the client is gone. And what the
//! host says at the level of Socket.IO needs room in the very buffer that such a client does not empty.

mod stream;

use parking_lot::Mutex;
use std::{
    any::Any,
    future::Future,
    io::{self, Write},
    mem::MaybeUninit,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{body::Bytes, serve::Listener};
use futures_util::task::AtomicWaker;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpListener,
    time::{Instant, Sleep, sleep},
};

use self::stream::Stream;
use crate::edge::{
    admission::{Admission, Admitted},
    tls::Tls,
};

/// How much is read at once from a client that sends much.
const AHEAD_BYTES: usize = 16 << 10;

/// What who is not let in is told, where there is no handshake before: a load balancer goes elsewhere.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Accepts connections as [`Line`]s.
pub(crate) struct Lines {
    listener: TcpListener,
    silence_max: Duration,
    admission: Admission,
    tls: Option<Tls>,
}

impl Lines {
    /// `silence_max`: after how long without a byte from the client its connection ends; `admission`: who gets one;
    /// `tls`: without it the connections are plain.
    pub(crate) fn new(listener: TcpListener, silence_max: Duration, admission: Admission, tls: Option<Tls>) -> Self {
        Self { listener, silence_max, admission, tls }
    }

    /// Who gets a connection.
    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }

    /// The next connection that is let in.
    pub(crate) async fn accept(&mut self) -> (Line, SocketAddr) {
        loop {
            let (stream, peer) = Listener::accept(&mut self.listener).await;
            let Some(admitted) = self.admission.admit(peer.ip()) else {
                if self.tls.is_none() {
                    // Nothing was sent on it, so there is room for so little; and whoever closed meanwhile is told nothing.
                    let _ = stream.into_std().and_then(|mut stream| stream.write_all(BUSY));
                }
                continue;
            };
            // Packets are small and waited for.
            let _ = stream.set_nodelay(true);
            let local = stream.local_addr().ok().map(|local| local.ip());
            let stream = match &self.tls {
                None => Stream::Plain(stream),
                Some(tls) => Stream::Shaking(Box::new((tls.accept(stream), tls.listener()))),
            };
            return (Line::new(stream, local, self.silence_max, admitted), peer);
        }
    }
}

/// A client's connection.
pub(crate) struct Line {
    stream: Stream,
    scissors: Scissors,
    silence_max: Duration,
    heard: Instant,
    /// Goes off when the client may have been silent for too long; moved on only then, not with every packet.
    alarm: Pin<Box<Sleep>>,
    ahead: Ahead,
    /// What was written last waits for room. The scissors know it, too; here it is looked at without asking them.
    is_stalled: bool,
    _admitted: Admitted,
}

impl Line {
    fn new(stream: Stream, local: Option<IpAddr>, silence_max: Duration, admitted: Admitted) -> Self {
        let alarm = Box::pin(sleep(silence_max));
        let (scissors, heard, ahead) = (Scissors::at(local), Instant::now(), Ahead::default());
        Self { stream, scissors, silence_max, heard, alarm, ahead, is_stalled: false, _admitted: admitted }
    }

    /// A way to cut it from elsewhere.
    pub(crate) fn scissors(&self) -> Scissors {
        self.scissors.clone()
    }

    /// Goes on with the handshake, if there is one.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if ready!(self.stream.poll_open(cx))? {
            self.scissors.0.is_certified.store(true, Ordering::Release);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_send<T>(
        &mut self,
        cx: &mut Context<'_>,
        send: impl FnOnce(Pin<&mut Stream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.scissors.0.writer.register(cx.waker());
        self.scissors.check()?;
        let sent = send(Pin::new(&mut self.stream), cx);
        if sent.is_pending() != self.is_stalled {
            self.is_stalled = sent.is_pending();
            self.scissors.note_stall(self.is_stalled);
        }
        if sent.is_pending() {
            // The engine stops reading when its own ping timeout is over, and then waits for this write.
            self.mind_silence(cx);
            self.scissors.check()?;
        }
        sent
    }

    /// Cuts the line if the client has been silent for too long; otherwise has whoever waits woken when it will have been.
    fn mind_silence(&mut self, cx: &mut Context<'_>) {
        while self.alarm.as_mut().poll(cx).is_ready() {
            let end = self.heard + self.silence_max;
            if end <= Instant::now() {
                metrics::counter!("pointwork_silent_connections_total").increment(1);
                return self.scissors.cut();
            }
            self.alarm.as_mut().reset(end);
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let line = self.get_mut();
        line.scissors.0.reader.register(cx.waker());
        line.mind_silence(cx);
        line.scissors.check()?;
        ready!(line.poll_open(cx))?;
        let before = buf.filled().len();
        ready!(line.ahead.poll_read(&mut line.stream, cx, buf))?;
        if buf.filled().len() > before {
            line.heard = Instant::now();
            line.scissors.hear(line.heard);
        }
        Poll::Ready(Ok(()))
    }
}

/// Reads ahead of a reader whose buffer is small, but only while much comes in: between two packets it holds nothing.
#[derive(Default)]
struct Ahead {
    /// What the reader had no room for yet.
    bytes: Bytes,
    /// The last read left no room, so there may be more where it came from.
    is_behind: bool,
}

impl Ahead {
    fn poll_read(&mut self, stream: &mut Stream, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.bytes.is_empty() {
            if !self.is_behind || buf.remaining() >= AHEAD_BYTES {
                ready!(Pin::new(stream).poll_read(cx, buf))?;
                self.is_behind = buf.remaining() == 0;
                return Poll::Ready(Ok(()));
            }
            let mut space = [MaybeUninit::uninit(); AHEAD_BYTES];
            let mut read = ReadBuf::uninit(&mut space);
            ready!(Pin::new(stream).poll_read(cx, &mut read))?;
            self.is_behind = read.remaining() == 0;
            let (now, later) = read.filled().split_at(read.filled().len().min(buf.remaining()));
            buf.put_slice(now);
            self.bytes = Bytes::copy_from_slice(later);
        } else {
            buf.put_slice(&self.bytes.split_to(self.bytes.len().min(buf.remaining())));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_send(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_send(cx, |stream, cx| stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let line = self.get_mut();
        if line.stream.is_plain() {
            return Poll::Ready(Ok(())); // what was taken is the kernel's
        }
        line.poll_send(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let line = self.get_mut();
        if line.stream.is_plain() {
            return Pin::new(&mut line.stream).poll_shutdown(cx);
        }
        line.poll_send(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // The scissors may be kept by those who need not know yet that there is nothing to cut.
        *self.scissors.0.held.lock() = None;
    }
}

/// Cuts one line, from wherever. Every request that comes over the line carries them in its extensions.
#[derive(Clone, Default)]
pub(crate) struct Scissors(Arc<Shared>);

struct Shared {
    is_cut: AtomicBool,
    /// The client showed a certificate that was verified.
    is_certified: AtomicBool,
    /// The address that the client connected to.
    local: Option<IpAddr>,
    /// What was written last waits for room.
    is_stalled: AtomicBool,
    /// It waited at some time since somebody asked.
    has_stalled: AtomicBool,
    began: Instant,
    /// When something was heard of the client last, in milliseconds since the line began.
    heard_ms: AtomicU64,
    reader: AtomicWaker,
    writer: AtomicWaker,
    /// What is given back when the line ends.
    held: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            is_cut: AtomicBool::new(false),
            is_certified: AtomicBool::new(false),
            local: None,
            is_stalled: AtomicBool::new(false),
            has_stalled: AtomicBool::new(false),
            began: Instant::now(),
            heard_ms: AtomicU64::new(0),
            reader: AtomicWaker::new(),
            writer: AtomicWaker::new(),
            held: Mutex::new(None),
        }
    }
}

impl Scissors {
    fn at(local: Option<IpAddr>) -> Self {
        Self(Arc::new(Shared { local, ..Shared::default() }))
    }

    fn note_stall(&self, is_stalled: bool) {
        self.0.is_stalled.store(is_stalled, Ordering::SeqCst);
        if is_stalled {
            self.0.has_stalled.store(true, Ordering::SeqCst);
        }
    }

    /// Whether the client has not taken all that was written, now or at any time since this was asked last: the kernel had no
    /// room for more. What is cut off now is lost.
    pub(crate) fn has_stalled(&self) -> bool {
        self.0.has_stalled.swap(self.0.is_stalled.load(Ordering::SeqCst), Ordering::SeqCst)
    }

    /// The address that the client connected to, if it could be told.
    pub(crate) fn local(&self) -> Option<IpAddr> {
        self.0.local
    }

    fn hear(&self, now: Instant) {
        let heard_ms = now.saturating_duration_since(self.0.began).as_millis();
        self.0.heard_ms.store(u64::try_from(heard_ms).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How long nothing was heard of the client: not a byte, be it of the engine's own.
    pub(crate) fn silence(&self) -> Duration {
        self.0.began.elapsed().saturating_sub(Duration::from_millis(self.0.heard_ms.load(Ordering::Relaxed)))
    }

    /// Whether the client showed a certificate that was verified, which is known by its first request.
    pub(crate) fn is_certified(&self) -> bool {
        self.0.is_certified.load(Ordering::Acquire)
    }

    /// Keeps a thing until the line ends, in place of the one before.
    pub(crate) fn hold(&self, thing: impl Any + Send) {
        *self.0.held.lock() = Some(Box::new(thing));
    }

    /// Ends the connection as if the network had: whoever reads or writes gets an error, and the client reconnects.
    pub(crate) fn cut(&self) {
        self.0.is_cut.store(true, Ordering::Release);
        self.0.reader.wake();
        self.0.writer.wake();
    }

    /// A way to cut the line that does not outlive it.
    pub(crate) fn downgrade(&self) -> WeakScissors {
        WeakScissors(Arc::downgrade(&self.0))
    }

    fn check(&self) -> io::Result<()> {
        if self.0.is_cut.load(Ordering::Acquire) { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }
}

/// [`Scissors`] that do not keep anything of the line.
pub(crate) struct WeakScissors(Weak<Shared>);

impl WeakScissors {
    /// Whether there still is a line.
    pub(crate) fn is_whole(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// `None` when there is no line any more.
    pub(crate) fn upgrade(&self) -> Option<Scissors> {
        self.0.upgrade().map(Scissors)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::*;

    async fn lines(silence_max: Duration) -> (Line, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (line, _) = Lines::new(listener, silence_max, Admission::of_operators(), None).accept().await;
        (line, client)
    }

    #[tokio::test]
    async fn what_is_read_ahead_is_the_same_and_is_not_kept() {
        let (mut line, mut client) = lines(Duration::from_secs(3_600)).await;
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
            let size = line.read(&mut small).await.unwrap();
            got.extend_from_slice(&small[..size]);
            most_ahead = most_ahead.max(line.ahead.bytes.len());
        }
        assert!(got == expected);
        assert!(most_ahead > 256, "{most_ahead}");
        assert!(line.ahead.bytes.is_empty());
        drop(sending.await.unwrap());
        assert_eq!(line.read(&mut [0; 256]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_cut_ends_a_read_and_a_write_that_wait() {
        let (line, _client) = lines(Duration::from_secs(3_600)).await;
        let scissors = line.scissors.clone();
        let (mut reader, mut writer) = tokio::io::split(line);
        let reading = tokio::spawn(async move { reader.read_u8().await });
        // More than the kernel takes, and nobody reads it.
        let writing = tokio::spawn(async move { writer.write_all(&vec![0; 64 << 20]).await });
        tokio::task::yield_now().await;
        scissors.cut();
        assert_eq!(reading.await.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        assert_eq!(writing.await.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }

    #[tokio::test]
    async fn a_client_that_has_not_taken_all_is_known() {
        let (mut line, mut client) = lines(Duration::from_secs(3_600)).await;
        let scissors = line.scissors();
        line.write_all(b"little").await.unwrap();
        assert!(!scissors.has_stalled());
        let much = vec![0; 64 << 20];
        let writing = tokio::spawn(async move { line.write_all(&much).await.map(|()| line) });
        while !scissors.has_stalled() {
            tokio::task::yield_now().await;
        }
        assert!(scissors.has_stalled(), "it still waits");
        client.read_exact(&mut vec![0; b"little".len() + (64 << 20)]).await.unwrap();
        let _line = writing.await.unwrap().unwrap();
        assert!(scissors.has_stalled(), "it waited since it was asked");
        assert!(!scissors.has_stalled());
    }

    #[tokio::test]
    async fn silence_ends_a_write_that_nobody_reads_beside() {
        let (mut line, _client) = lines(Duration::from_millis(50)).await;
        let written = line.write_all(&vec![0; 64 << 20]).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }

    #[tokio::test]
    async fn silence_ends_a_connection_and_a_word_prolongs_it() {
        let (mut line, mut client) = lines(Duration::from_millis(50)).await;
        client.write_all(b"x").await.unwrap();
        assert_eq!(line.read_u8().await.unwrap(), b'x');
        let heard = line.heard;
        assert_eq!(line.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        assert!(heard.elapsed() >= Duration::from_millis(50));
    }
}
