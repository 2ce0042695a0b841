//! Tracks the sessions that poll: their open polls, their upgrades to a WebSocket, and those that the host has ended.

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::{
    extract::{ConnectInfo, Request, State},
    http::{Method, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::edge::{
    admission::KeyedCounts,
    connection::{ConnectionHandle, WeakConnectionHandle},
};

/// The sessions that began with HTTP polling, by id. A socket remembers the connection that it began on. For a poll, that connection
/// may be a proxy's and carry requests of other clients.
#[derive(Clone)]
pub(crate) struct PollingSessions(Arc<SessionTable>);

struct SessionTable {
    /// The connections of sessions that have upgraded to a WebSocket.
    websockets: Mutex<HashMap<String, WeakConnectionHandle>>,
    /// When the host ended a polling session.
    ended: Mutex<HashMap<String, Instant>>,
    /// Open polls by session.
    polls: Arc<KeyedCounts<Arc<str>>>,
}

impl Default for PollingSessions {
    fn default() -> Self {
        let polls = Arc::new(KeyedCounts::new(usize::MAX));
        Self(Arc::new(SessionTable { websockets: Mutex::default(), ended: Mutex::default(), polls }))
    }
}

/// How long the host remembers that it ended a session. By then the engine has ended it too.
const ENDED_KEPT: Duration = Duration::from_secs(300);

impl PollingSessions {
    /// Remembers the WebSocket of a session. Closed connections are removed before the table grows, so it never has more than twice
    /// as many entries as there are connections.
    fn upgrade(&self, session: &str, connection: WeakConnectionHandle) {
        let mut websockets = self.0.websockets.lock();
        // The engine refuses a second WebSocket of a session.
        if websockets.get(session).is_some_and(WeakConnectionHandle::is_open) {
            return;
        }
        if websockets.len() == websockets.capacity() {
            websockets.retain(|_, connection| connection.is_open());
        }
        websockets.insert(session.to_owned(), connection);
    }

    /// From now on, requests of the session are answered as if it did not exist.
    pub(super) fn end(&self, session: &str) {
        let mut ended = self.0.ended.lock();
        if ended.len() == ended.capacity() {
            ended.retain(|_, since| since.elapsed() < ENDED_KEPT);
        }
        ended.insert(session.to_owned(), Instant::now());
    }

    fn is_ended(&self, session: &str) -> bool {
        self.0.ended.lock().contains_key(session)
    }

    /// The connection of the session's WebSocket.
    pub(super) fn websocket(&self, session: &str) -> Option<ConnectionHandle> {
        self.0.websockets.lock().get(session).and_then(WeakConnectionHandle::upgrade)
    }

    /// Whether a poll of the session waits for data.
    pub(super) fn has_open_poll(&self, session: &str) -> bool {
        self.0.polls.has(session)
    }
}

/// Middleware that tracks polls and upgrades. Each request gets the table in its extensions, where its socket finds it.
pub(crate) async fn track_polling(
    State(sessions): State<PollingSessions>,
    mut request: Request,
    next: Next,
) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let is_websocket = is_websocket_query(query);
    let session: Option<Arc<str>> =
        value(query, "sid").filter(|session| session.len() <= SESSION_BYTES_MAX).map(Into::into);
    let (mut connection, mut poll) = (None, None);
    if let Some(session) = &session {
        if is_websocket {
            connection = request
                .extensions()
                .get()
                .map(|ConnectInfo(connection): &ConnectInfo<ConnectionHandle>| connection.downgrade());
        } else if request.method() == Method::GET {
            poll = sessions.0.polls.take(session.clone());
        }
    }
    request.extensions_mut().insert(sessions.clone());
    let response = next.run(request).await;
    drop(poll);
    let Some(session) = session else { return response };
    // Only after the answer: an unknown session id must not take memory.
    if response.status() == StatusCode::SWITCHING_PROTOCOLS
        && let Some(connection) = connection
    {
        sessions.upgrade(&session, connection);
    }
    // Only after the answer: the session may have ended while the poll waited. The poll still had to run, because it makes room in the
    // buffer for the close. The client gets the engine's answer for an unknown session, and so it connects again.
    if sessions.is_ended(&session) {
        return (StatusCode::BAD_REQUEST, r#"{"code":1,"message":"Session ID unknown"}"#).into_response();
    }
    response
}

/// The length of an Engine.IO session id.
const SESSION_BYTES_MAX: usize = 16;

fn value<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

pub(super) fn is_websocket_query(query: &str) -> bool {
    value(query, "transport") == Some("websocket")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::{Router, body::Body, middleware, routing::get};
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;

    use super::*;

    #[test]
    fn forgets_closed_websockets() {
        let sessions = PollingSessions::default();
        let living = ConnectionHandle::new(None);
        sessions.upgrade("living", living.downgrade());
        for session in 0..10_000 {
            sessions.upgrade(&session.to_string(), ConnectionHandle::new(None).downgrade());
        }
        assert!(sessions.0.websockets.lock().len() < 100);
        sessions.upgrade("living", ConnectionHandle::new(None).downgrade());
        for _ in 0..2 {
            sessions.websocket("living").unwrap().abort();
        }
        assert!(sessions.websocket("unknown").is_none());
    }

    #[tokio::test]
    async fn remembers_a_session_only_after_its_upgrade() {
        let sessions = PollingSessions::default();
        let app = TowerToHyperService::new(
            Router::new()
                .route("/", get(|| async { StatusCode::SWITCHING_PROTOCOLS }))
                .layer(middleware::from_fn_with_state(sessions.clone(), track_polling)),
        );
        let connection = ConnectionHandle::new(None);
        let ask = |uri: String| {
            let request = Request::get(uri).extension(ConnectInfo(connection.clone())).body(Body::empty()).unwrap();
            app.call(request)
        };
        for session in 0..3_000 {
            for transport in ["websocket", "polling"] {
                let response = ask(format!("/unknown?transport={transport}&sid={session}")).await.unwrap();
                assert_eq!(response.status(), StatusCode::NOT_FOUND);
            }
        }
        assert_eq!((sessions.0.websockets.lock().len(), sessions.0.polls.len()), (0, 0));
        ask("/?transport=websocket&sid=known".into()).await.unwrap();
        assert!(sessions.websocket("known").is_some());
        sessions.end("known");
        let late = ask("/?transport=websocket&sid=known".into()).await.unwrap();
        assert_eq!(late.status(), StatusCode::BAD_REQUEST, "an upgrade that comes after the end");
    }
}
