//! Ends the connections of clients: of one that does not take what it is sent, and of all when this replica shuts down.
//!
//! The connection is ended, not the socket: a client whose socket the server disconnects stays away for good, one whose
//! connection broke comes back and starts afresh.

use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::{
    extract::{ConnectInfo, Request, State},
    http::{Method, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use socketioxide::TransportType;
use tokio::time::Instant;

use crate::edge::{
    admission::Tally,
    connection::{Scissors, WeakScissors},
    socketio::SocketRef,
};

/// What is known of sessions that began by polling, by their ids. The line that a socket remembers is the one it began on: its own for
/// a WebSocket, but that of a poll may be a proxy's, and carry others' requests too.
#[derive(Clone)]
pub(crate) struct Upgrades(Arc<Sessions>);

struct Sessions {
    /// The lines of those that went over to a WebSocket, or are about to.
    lines: Mutex<HashMap<String, WeakScissors>>,
    /// Those that poll and were ended.
    shut: Mutex<HashMap<String, Instant>>,
    /// Polls that wait for something to be sent.
    polls: Arc<Tally<Arc<str>>>,
}

impl Default for Upgrades {
    fn default() -> Self {
        let polls = Arc::new(Tally::new(usize::MAX));
        Self(Arc::new(Sessions { lines: Mutex::default(), shut: Mutex::default(), polls }))
    }
}

/// For so long a polling client that was cut off may ask for its session; the engine has ended it before.
const SHUT_KEPT: Duration = Duration::from_secs(300);

impl Upgrades {
    /// Notes `line` for a session: it has just become a WebSocket, so there is one entry a line at the most. Lines that ended are
    /// forgotten as the table grows: it never holds more than twice the connections there are.
    fn note(&self, session: &str, line: WeakScissors) {
        let mut lines = self.0.lines.lock();
        // The engine turns away a second WebSocket of a session.
        if lines.get(session).is_some_and(WeakScissors::is_whole) {
            return;
        }
        if lines.len() == lines.capacity() {
            lines.retain(|_, line| line.is_whole());
        }
        lines.insert(session.to_owned(), line);
    }

    /// A session is answered no more, as one that the engine does not know.
    fn shut(&self, session: &str) {
        let mut shut = self.0.shut.lock();
        if shut.len() == shut.capacity() {
            shut.retain(|_, since| since.elapsed() < SHUT_KEPT);
        }
        shut.insert(session.to_owned(), Instant::now());
    }

    fn is_shut(&self, session: &str) -> bool {
        self.0.shut.lock().contains_key(session)
    }

    /// The WebSocket's line of a session.
    fn line(&self, session: &str) -> Option<Scissors> {
        self.0.lines.lock().get(session).and_then(WeakScissors::upgrade)
    }
}

/// Notes polls and upgrades, and gives every request the table of them, which its socket will find there.
pub(crate) async fn note_upgrade(State(upgrades): State<Upgrades>, mut request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let is_websocket = is_for_websocket(query);
    let session: Option<Arc<str>> =
        value(query, "sid").filter(|session| session.len() <= SESSION_BYTES_MAX).map(Into::into);
    let (mut line, mut poll) = (None, None);
    if let Some(session) = &session {
        if is_websocket {
            line = request.extensions().get().map(|ConnectInfo(line): &ConnectInfo<Scissors>| line.downgrade());
        } else if request.method() == Method::GET {
            poll = upgrades.0.polls.take(session.clone());
        }
    }
    request.extensions_mut().insert(upgrades.clone());
    let response = next.run(request).await;
    drop(poll);
    let Some(session) = session else { return response };
    // Only now: whoever makes up ids is told that there is no such session, as often as it likes on one connection.
    if response.status() == StatusCode::SWITCHING_PROTOCOLS
        && let Some(line) = line
    {
        upgrades.note(&session, line);
    }
    // Only now: it may have been shut while this poll waited. The request was let through all the same: what it takes out of the buffer
    // makes room for the socket to be closed. Its client is told what the engine tells one whose session it does not know, and that one
    // comes back.
    if upgrades.is_shut(&session) {
        return (StatusCode::BAD_REQUEST, r#"{"code":1,"message":"Session ID unknown"}"#).into_response();
    }
    response
}

/// An Engine.IO session id has 16 bytes here.
const SESSION_BYTES_MAX: usize = 16;

fn value<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn is_for_websocket(query: &str) -> bool {
    value(query, "transport") == Some("websocket")
}

/// The client's own line: its WebSocket's. `None` for one that polls, unless its upgrade is under way.
fn line(socket: &SocketRef) -> Option<Scissors> {
    let request = socket.req_parts();
    if is_for_websocket(request.uri.query().unwrap_or_default()) {
        return request.extensions.get().map(|ConnectInfo(line): &ConnectInfo<Scissors>| line.clone());
    }
    request.extensions.get::<Upgrades>()?.line(socket.id.as_str())
}

fn polls(socket: &SocketRef) -> bool {
    socket.transport_type() == TransportType::Polling
}

/// How long nothing was heard of a client on its connection, the engine's own packets included. `None` for one that polls: its
/// connections come and go.
pub(crate) fn silence(socket: &SocketRef) -> Option<Duration> {
    if polls(socket) { None } else { line(socket).map(|line| line.silence()) }
}

/// Whether the client has not taken all that it was sent, now or at any time since this was asked last. One that polls has when
/// its next poll waits for more.
pub(crate) fn is_sending(socket: &SocketRef) -> bool {
    if polls(socket) {
        let upgrades = socket.req_parts().extensions.get::<Upgrades>();
        return upgrades.is_some_and(|upgrades| !upgrades.0.polls.has(socket.id.as_str()));
    }
    line(socket).is_some_and(|line| line.has_stalled())
}

/// Cuts the client off, once.
pub(crate) fn cut_off(socket: &SocketRef) {
    if socket.extensions.insert(Shed).is_some() {
        return;
    }
    metrics::counter!("pointwork_slow_consumers_total").increment(1);
    tracing::info!(socket = %socket.id, "a client does not take what it is sent and is cut off");
    end(socket);
}

/// Ends a client's connection because this replica shuts down. To be done to each of its sockets.
pub(crate) fn hang_up(socket: &SocketRef) {
    socket.extensions.insert(HungUp);
    end(socket);
}

/// Whether the client's connection was ended by [`hang_up`].
pub(crate) fn was_hung_up(socket: &SocketRef) -> bool {
    socket.extensions.get::<HungUp>().is_some()
}

/// Ends the connection of a client that is not let into a namespace for now. A CONNECT_ERROR, which it is not to see, would keep it
/// away for good.
pub(crate) fn turn_away(socket: &SocketRef) {
    silence_session(socket);
}

fn end(socket: &SocketRef) {
    if silence_session(socket) {
        say_farewell(socket);
    }
}

/// From here on the client hears nothing of its session. True if that outlives its connections.
fn silence_session(socket: &SocketRef) -> bool {
    let polls = polls(socket);
    if polls && let Some(upgrades) = socket.req_parts().extensions.get::<Upgrades>() {
        // Before its line is looked for: an upgrade that comes between is refused.
        upgrades.shut(socket.id.as_str());
    }
    if let Some(line) = line(socket) {
        line.cut();
    }
    polls
}

/// Ends the session of a client that polls: it outlives its connections. That it is closed must not be told to it, or it stays away;
/// this waits for a place in the buffer that its next poll empties.
fn say_farewell(socket: &SocketRef) {
    let socket = socket.clone();
    tokio::spawn(async move {
        while let Err(socketioxide::SocketError::InternalChannelFull) = socket.clone().disconnect() {
            tokio::time::sleep(FAREWELL_INTERVAL).await;
        }
    });
}

const FAREWELL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(50);

/// Marks a socket whose client was cut off.
#[derive(Clone)]
struct Shed;

/// Marks a socket whose client was hung up on.
#[derive(Clone)]
struct HungUp;

/// Closes a socket, by a task of its own: this may be in the middle of one of the socket's events, and its end is one, too. One that
/// takes nothing more has its connection cut.
pub(crate) fn close(socket: SocketRef) {
    tokio::spawn(async move {
        if socket.clone().disconnect().is_err() {
            cut_off(&socket);
        }
    });
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::{Router, body::Body, middleware, routing::get};
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;

    use super::*;

    #[test]
    fn lines_that_ended_are_forgotten() {
        let upgrades = Upgrades::default();
        let living = Scissors::default();
        upgrades.note("living", living.downgrade());
        for session in 0..10_000 {
            upgrades.note(&session.to_string(), Scissors::default().downgrade());
        }
        assert!(upgrades.0.lines.lock().len() < 100);
        upgrades.note("living", Scissors::default().downgrade());
        for _ in 0..2 {
            upgrades.line("living").unwrap().cut();
        }
        assert!(upgrades.line("unknown").is_none());
    }

    #[tokio::test]
    async fn a_session_is_noted_when_its_line_becomes_a_websocket_and_not_before() {
        let upgrades = Upgrades::default();
        let app = TowerToHyperService::new(
            Router::new()
                .route("/", get(|| async { StatusCode::SWITCHING_PROTOCOLS }))
                .layer(middleware::from_fn_with_state(upgrades.clone(), note_upgrade)),
        );
        let line = Scissors::default();
        let ask = |uri: String| {
            let request = Request::get(uri).extension(ConnectInfo(line.clone())).body(Body::empty()).unwrap();
            app.call(request)
        };
        for session in 0..3_000 {
            for transport in ["websocket", "polling"] {
                let response = ask(format!("/unknown?transport={transport}&sid={session}")).await.unwrap();
                assert_eq!(response.status(), StatusCode::NOT_FOUND);
            }
        }
        assert_eq!((upgrades.0.lines.lock().len(), upgrades.0.polls.len()), (0, 0));
        ask("/?transport=websocket&sid=known".into()).await.unwrap();
        assert!(upgrades.line("known").is_some());
        upgrades.shut("known");
        let late = ask("/?transport=websocket&sid=known".into()).await.unwrap();
        assert_eq!(late.status(), StatusCode::BAD_REQUEST, "an upgrade that comes after the end");
    }
}
