//! How far a leave has come, for those who let clients in: the probe, and the door of the engine.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use axum::{
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

const SERVES: u8 = 0;
const SETTLES: u8 = 1;
const CLOSES: u8 = 2;

/// Shared by all who ask.
#[derive(Clone, Default)]
pub(crate) struct Phase(Arc<AtomicU8>);

impl Phase {
    /// It was asked to stop: the load balancer is to send nobody any more, but whoever comes is let in.
    pub(crate) fn settles(&self) {
        self.0.store(SETTLES, Ordering::Relaxed);
    }

    /// Sockets are being closed: who came now would be closed too.
    pub(crate) fn closes(&self) {
        self.0.store(CLOSES, Ordering::Relaxed);
    }

    /// Whether it was asked to stop.
    pub(crate) fn is_draining(&self) -> bool {
        self.0.load(Ordering::Relaxed) != SERVES
    }
}

/// Refuses new sessions while sockets are being closed. The sessions that there are go on: those that poll need a new request, and perhaps
/// a new connection, for each of their packets, so the listener stays open for them.
pub(crate) async fn refuse_new(State(phase): State<Phase>, request: Request, next: Next) -> Response {
    if phase.0.load(Ordering::Relaxed) == CLOSES && is_new(request.uri().query().unwrap_or_default()) {
        let body = r#"{"message":"this server shuts down"}"#;
        return (StatusCode::SERVICE_UNAVAILABLE, [(header::CONNECTION, "close")], body).into_response();
    }
    next.run(request).await
}

/// A request of the engine that names no session begins one.
fn is_new(query: &str) -> bool {
    let has =
        |name: &str| query.split('&').any(|pair| pair.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')));
    has("transport") && !has("sid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_the_engine_without_a_session_is_new() {
        assert!(is_new("EIO=4&transport=websocket"));
        assert!(is_new("EIO=4&transport=polling&t=abc&my_sid=1"));
        assert!(!is_new("EIO=4&transport=polling&sid=abc"));
        assert!(!is_new(""));
    }
}
