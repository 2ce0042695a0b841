//! Applies the limits on clients behind a proxy to a request, and bounds the time for its body.

use std::{
    future::Future,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
    http::{StatusCode, header::UPGRADE},
};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::edge::{
    admission::{ConnectionLimits, LimitReached, NetworkGuard},
    connection::ConnectionHandle,
};

/// How long a client may take for the parts of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpTimeouts {
    /// From the start of the connection until the head of its first request is complete, TLS handshake included.
    pub(crate) first_head: Duration,
    /// From one request until the head of the next is complete. It is longer than load balancers keep idle connections, usually a
    /// minute: a load balancer that sends on a connection just being closed reports an error to its client.
    pub(crate) next_head: Duration,
    /// Until the body of a request is complete.
    pub(crate) body: Duration,
}

/// Checks the requests of one connection.
pub(super) struct RequestAdmission {
    pub(super) limits: ConnectionLimits,
    pub(super) peer: SocketAddr,
    pub(super) connection: ConnectionHandle,
    pub(super) timeouts: HttpTimeouts,
}

impl RequestAdmission {
    pub(super) fn admit(&self, request: Request<Incoming>) -> Result<(Request, Option<ProxiedUpgrade>), LimitReached> {
        let headers = request.headers();
        // Behind a proxy, only a WebSocket has a connection of its own. Polls of many clients share one.
        let guard =
            if headers.contains_key(UPGRADE) { self.limits.admit_forwarded(self.peer.ip(), headers)? } else { None };
        let upgrade = guard.map(|guard| ProxiedUpgrade { connection: self.connection.clone(), guard });
        let body_max = self.timeouts.body;
        let request = request
            .map(|body| if body.is_end_stream() { Body::empty() } else { Body::new(TimedBody::new(body, body_max)) });
        Ok((request, upgrade))
    }
}

/// A request for a WebSocket that came through a trusted proxy.
pub(super) struct ProxiedUpgrade {
    connection: ConnectionHandle,
    guard: NetworkGuard,
}

impl ProxiedUpgrade {
    /// If the upgrade succeeded, the client is counted until the WebSocket ends. If not, the proxy uses the connection for others.
    pub(super) fn answered(self, status: StatusCode) {
        if status == StatusCode::SWITCHING_PROTOCOLS {
            self.connection.keep(self.guard);
        }
    }
}

/// A body that fails if it is not complete in time.
struct TimedBody {
    body: Incoming,
    alarm: Pin<Box<Sleep>>,
}

impl TimedBody {
    fn new(body: Incoming, max: Duration) -> Self {
        Self { body, alarm: Box::pin(sleep(max)) }
    }
}

/// The body of a request did not arrive in time.
#[derive(Debug, thiserror::Error)]
#[error("the body of the request did not come in time")]
struct BodyTooSlow;

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let timed = self.get_mut();
        if timed.alarm.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(BodyTooSlow.into())));
        }
        Pin::new(&mut timed.body).poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
