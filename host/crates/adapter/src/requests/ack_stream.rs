//! The acknowledgements of a broadcast: those of local sockets, and those of other servers' sockets.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::{FusedStream, Stream};
use futures_util::StreamExt;
use futures_util::stream::{PollNext, select_with_strategy, unfold};
use rmpv::Value;
use socketioxide_core::Sid;
use socketioxide_core::adapter::{AckStreamItem, SocketEmitter};
use tokio::time::{Instant, timeout_at};

use super::open_requests::{OpenRequest, Reply};
use crate::wire::Body;

/// A stream of acknowledgements. The wire does not say which socket of another server acknowledged, so those have the id
/// [`Sid::ZERO`].
pub struct AckStream<E: SocketEmitter>(Pin<Box<dyn FusedStream<Item = AckStreamItem<E::AckError>> + Send>>);

impl<E: SocketEmitter> AckStream<E> {
    pub(crate) fn local(acks: E::AckStream) -> Self {
        AckStream(Box::pin(acks))
    }

    /// `request` asks this many other servers, which answer before the deadline. `encode` makes an acknowledgement of its first
    /// argument.
    pub(crate) fn with_remote(
        acks: E::AckStream,
        request: OpenRequest,
        servers: u64,
        deadline: Instant,
        encode: impl Fn(Value) -> Option<socketioxide_core::Value> + Send + 'static,
    ) -> Self {
        let remote = RemoteAcks { request, counts_due: servers, acks_due: 0, deadline };
        let remote = unfold(remote, async |mut remote| remote.next().await.map(|ack| (ack, remote)));
        let remote = remote.filter_map(move |first| std::future::ready(encode(first).map(|ack| (Sid::ZERO, Ok(ack)))));
        let local_first = |_: &mut ()| PollNext::Left;
        AckStream(Box::pin(select_with_strategy(acks, remote, local_first)))
    }
}

impl<E: SocketEmitter> Stream for AckStream<E> {
    type Item = AckStreamItem<E::AckError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl<E: SocketEmitter> FusedStream for AckStream<E> {
    fn is_terminated(&self) -> bool {
        self.0.is_terminated()
    }
}

/// What other servers must still answer.
struct RemoteAcks {
    request: OpenRequest,
    /// How many servers have not said yet how many of their sockets got the broadcast.
    counts_due: u64,
    /// How many announced acknowledgements have not arrived.
    acks_due: u64,
    deadline: Instant,
}

impl RemoteAcks {
    /// The first argument of the next acknowledgement. `None` if there are no more.
    async fn next(&mut self) -> Option<Value> {
        while self.counts_due > 0 || self.acks_due > 0 {
            let reply = match timeout_at(self.deadline, self.request.replies.recv()).await.ok()?? {
                Reply::Answer(reply) => reply,
                // The sockets of one server will not answer. Those of the others may.
                Reply::Unanswered => continue,
                Reply::Lost => return None,
            };
            match reply.body {
                Body::BroadcastClientCount(count) => {
                    self.counts_due = self.counts_due.saturating_sub(1);
                    self.acks_due = self.acks_due.saturating_add(count.client_count);
                }
                Body::BroadcastAck(answer) => {
                    self.acks_due = self.acks_due.saturating_sub(1);
                    return Some(answer.packet);
                }
                _ => {}
            }
        }
        None
    }
}
