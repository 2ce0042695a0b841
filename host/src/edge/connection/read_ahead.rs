//! Reads large messages in few reads, for a reader whose own buffer is small.

use std::{
    io,
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::body::Bytes;
use tokio::io::{AsyncRead, ReadBuf};

use super::stream::ByteStream;

/// How much is read at once from a client that sends much.
const READ_AHEAD_BYTES: usize = 16 << 10;

/// Reads ahead only while the client sends much. Between two packets it holds no memory.
#[derive(Default)]
pub(super) struct ReadAhead {
    /// Bytes that the reader has had no room for.
    pub(super) bytes: Bytes,
    /// The last read filled its buffer, so there may be more.
    is_behind: bool,
}

impl ReadAhead {
    pub(super) fn poll_read(
        &mut self,
        stream: &mut ByteStream,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.bytes.is_empty() {
            if !self.is_behind || buf.remaining() >= READ_AHEAD_BYTES {
                ready!(Pin::new(stream).poll_read(cx, buf))?;
                self.is_behind = buf.remaining() == 0;
                return Poll::Ready(Ok(()));
            }
            let mut space = [MaybeUninit::uninit(); READ_AHEAD_BYTES];
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
