//! A handle by which the rest of the host aborts a connection and learns about it.

use std::{
    any::Any,
    io,
    net::IpAddr,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Aborts and observes one connection. Every request carries the handle of its connection in its extensions.
#[derive(Clone)]
pub(crate) struct ConnectionHandle(pub(super) Arc<ConnectionState>);

pub(super) struct ConnectionState {
    is_aborted: AtomicBool,
    /// The client showed a certificate that was verified.
    pub(super) is_certified: AtomicBool,
    /// The address that the client connected to.
    local: Option<IpAddr>,
    /// The last write waits because the kernel has no room.
    is_stalled: AtomicBool,
    /// A write has waited since the last [`take_stalled`](ConnectionHandle::take_stalled).
    has_stalled: AtomicBool,
    began: Instant,
    /// When the last byte came from the client, in milliseconds since `began`.
    heard_ms: AtomicU64,
    pub(super) reader: AtomicWaker,
    pub(super) writer: AtomicWaker,
    /// A value that is dropped when the connection ends.
    pub(super) kept: Mutex<Option<Box<dyn Any + Send>>>,
}

impl ConnectionHandle {
    /// `local` is the address that the client connected to.
    pub(crate) fn new(local: Option<IpAddr>) -> Self {
        Self(Arc::new(ConnectionState {
            is_aborted: AtomicBool::default(),
            is_certified: AtomicBool::default(),
            local,
            is_stalled: AtomicBool::default(),
            has_stalled: AtomicBool::default(),
            began: Instant::now(),
            heard_ms: AtomicU64::default(),
            reader: AtomicWaker::default(),
            writer: AtomicWaker::default(),
            kept: Mutex::default(),
        }))
    }

    pub(super) fn set_stalled(&self, is_stalled: bool) {
        self.0.is_stalled.store(is_stalled, Ordering::SeqCst);
        if is_stalled {
            self.0.has_stalled.store(true, Ordering::SeqCst);
        }
    }

    /// Whether a write had to wait because the client reads too slowly, now or at any time since the last call. If the connection
    /// is aborted now, data is lost.
    pub(crate) fn take_stalled(&self) -> bool {
        self.0.has_stalled.swap(self.0.is_stalled.load(Ordering::SeqCst), Ordering::SeqCst)
    }

    /// The address that the client connected to, if it is known.
    pub(crate) fn local(&self) -> Option<IpAddr> {
        self.0.local
    }

    pub(super) fn set_heard(&self, now: Instant) {
        let heard_ms = now.saturating_duration_since(self.0.began).as_millis();
        self.0.heard_ms.store(u64::try_from(heard_ms).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The time since the last byte from the client, packets of the engine included.
    pub(crate) fn silence(&self) -> Duration {
        self.0.began.elapsed().saturating_sub(Duration::from_millis(self.0.heard_ms.load(Ordering::Relaxed)))
    }

    /// Whether the client showed a certificate that was verified. Known when the first request arrives.
    pub(crate) fn is_certified(&self) -> bool {
        self.0.is_certified.load(Ordering::Acquire)
    }

    /// Keeps `value` until the connection ends, in place of the value before.
    pub(crate) fn keep(&self, value: impl Any + Send) {
        *self.0.kept.lock() = Some(Box::new(value));
    }

    /// Ends the connection like a network failure: reads and writes fail, and the client reconnects.
    pub(crate) fn abort(&self) {
        self.0.is_aborted.store(true, Ordering::Release);
        self.0.reader.wake();
        self.0.writer.wake();
    }

    /// A handle that does not keep the state of the connection alive.
    pub(crate) fn downgrade(&self) -> WeakConnectionHandle {
        WeakConnectionHandle(Arc::downgrade(&self.0))
    }

    pub(super) fn check(&self) -> io::Result<()> {
        if self.0.is_aborted.load(Ordering::Acquire) { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }
}

/// A [`ConnectionHandle`] that does not keep the state of the connection alive.
pub(crate) struct WeakConnectionHandle(Weak<ConnectionState>);

impl WeakConnectionHandle {
    /// Whether the connection still exists.
    pub(crate) fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// `None` if the connection has ended.
    pub(crate) fn upgrade(&self) -> Option<ConnectionHandle> {
        self.0.upgrade().map(ConnectionHandle)
    }
}
