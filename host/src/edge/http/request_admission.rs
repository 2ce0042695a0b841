//! Applies the limits on clients behind a proxy to a request, and bounds the time for its body.

use std::net::SocketAddr;

use axum::{
    body::{Body, HttpBody},
    extract::Request,
    http::{StatusCode, header::UPGRADE},
};
use hyper::body::Incoming;

use super::{timed_body::TimedBody, timeouts::HttpTimeouts};
use crate::edge::{
    admission::{ConnectionLimits, LimitReached, NetworkGuard},
    connection::ConnectionHandle,
};

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
