//! The acknowledgements of a broadcast: of the local sockets first, then of other servers' as they come.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::{FusedStream, Stream};
use socketioxide_core::Sid;
use socketioxide_core::adapter::{AckStreamItem, SocketEmitter};
use tokio::time::Sleep;

use crate::requests::{Reply, Request};
use crate::wire::Body;

/// A stream of acknowledgements. Those of other servers do not say whose they are: their id is [`Sid::ZERO`].
pub struct AckStream<E: SocketEmitter> {
    local: Pin<Box<E::AckStream>>,
    remote: Option<Remote>,
    encode: Box<dyn Fn(rmpv::Value) -> Option<socketioxide_core::Value> + Send>,
}

/// What other servers still owe.
struct Remote {
    request: Request,
    /// Servers that have not said yet how many of their sockets got it.
    counts: u64,
    /// Acks that are announced and have not come.
    acks: u64,
    deadline: Pin<Box<Sleep>>,
}

impl<E: SocketEmitter> AckStream<E> {
    pub(crate) fn local(acks: E::AckStream) -> Self {
        AckStream { local: Box::pin(acks), remote: None, encode: Box::new(|_| None) }
    }

    /// `servers` are asked by `request` and answer within the deadline; `encode` makes an ack of its first argument.
    pub(crate) fn with_remote(
        acks: E::AckStream,
        request: Request,
        servers: u64,
        deadline: tokio::time::Instant,
        encode: impl Fn(rmpv::Value) -> Option<socketioxide_core::Value> + Send + 'static,
    ) -> Self {
        let deadline = Box::pin(tokio::time::sleep_until(deadline));
        let remote = Remote { request, counts: servers, acks: 0, deadline };
        AckStream { local: Box::pin(acks), remote: Some(remote), encode: Box::new(encode) }
    }
}

impl Remote {
    fn is_done(&self) -> bool {
        self.counts == 0 && self.acks == 0
    }

    /// The next ack's first argument; `None` when there are no more.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<rmpv::Value>> {
        loop {
            if self.is_done() {
                return Poll::Ready(None);
            }
            let answered = match self.request.replies.poll_recv(cx) {
                Poll::Ready(Some(Reply::Answer(answered))) => answered,
                // One server's sockets will not answer; the others' may.
                Poll::Ready(Some(Reply::Unanswered)) => continue,
                Poll::Ready(Some(Reply::Lost) | None) => return Poll::Ready(None),
                Poll::Pending => return self.deadline.as_mut().poll(cx).map(|()| None),
            };
            match answered.body {
                Body::BroadcastClientCount(count) => {
                    self.counts = self.counts.saturating_sub(1);
                    self.acks = self.acks.saturating_add(count.client_count);
                }
                Body::BroadcastAck(answer) => {
                    self.acks = self.acks.saturating_sub(1);
                    return Poll::Ready(Some(answer.packet));
                }
                _ => {}
            }
        }
    }
}

impl<E: SocketEmitter> Stream for AckStream<E> {
    type Item = AckStreamItem<E::AckError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let local = if self.local.is_terminated() { Poll::Ready(None) } else { self.local.as_mut().poll_next(cx) };
        if let Poll::Ready(Some(item)) = local {
            return Poll::Ready(Some(item));
        }
        let this = &mut *self;
        let Some(remote) = &mut this.remote else { return local };
        loop {
            match remote.poll(cx) {
                Poll::Ready(Some(first)) => {
                    if let Some(value) = (this.encode)(first) {
                        return Poll::Ready(Some((Sid::ZERO, Ok(value))));
                    }
                }
                Poll::Ready(None) => {
                    this.remote = None;
                    return local;
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl<E: SocketEmitter> FusedStream for AckStream<E> {
    fn is_terminated(&self) -> bool {
        self.local.is_terminated() && self.remote.is_none()
    }
}

// The local acks are pinned on their own, and nothing else needs to stay in its place.
impl<E: SocketEmitter> Unpin for AckStream<E> {}
