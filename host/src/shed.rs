//! Ends the connections of clients: of one that does not take what it is sent, and of all when this replica shuts down.
//!
//! The connection is ended, not the socket: a client whose socket the server disconnects stays away for good, one whose
//! connection broke comes back and starts afresh.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    extract::{ConnectInfo, Request, State},
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse, Response},
};
use socketioxide::TransportType;
use tokio::time::Instant;

use crate::{
    io::SocketRef,
    line::{Scissors, WeakScissors},
    lock::lock,
};

/// The lines of clients that began by polling and went over to a WebSocket, by the id of their session. The line that a socket
/// remembers is the one it began on. And the sessions of those that poll and were cut off.
#[derive(Clone, Default)]
pub(crate) struct Upgrades(Arc<Mutex<HashMap<String, WeakScissors>>>, Arc<Mutex<HashMap<String, Instant>>>);

/// For so long a polling client that was cut off may ask for its session; the engine has ended it before.
const SHUT_KEPT: Duration = Duration::from_secs(300);

impl Upgrades {
    /// Notes `line` for a session. The id is the client's word, so lines that ended are forgotten as the table grows: it
    /// never holds more than twice the connections there are.
    fn note(&self, session: String, line: &Scissors) {
        let mut lines = lock(&self.0);
        if lines.len() == lines.capacity() {
            lines.retain(|_, line| line.is_whole());
        }
        lines.insert(session, line.downgrade());
    }

    /// A session is answered no more, as one that the engine does not know.
    fn shut(&self, session: &str) {
        let mut shut = lock(&self.1);
        if shut.len() == shut.capacity() {
            shut.retain(|_, since| since.elapsed() < SHUT_KEPT);
        }
        shut.insert(session.to_owned(), Instant::now());
    }

    fn is_shut(&self, session: &str) -> bool {
        lock(&self.1).contains_key(session)
    }

    fn silence(&self, session: &str) -> Option<Duration> {
        lock(&self.0).get(session).and_then(WeakScissors::silence)
    }

    fn cut(&self, session: &str) -> bool {
        lock(&self.0).remove(session).is_some_and(|line| line.cut())
    }
}

/// Notes upgrades, and gives every request the table of them, which its socket will find there.
pub(crate) async fn note_upgrade(State(upgrades): State<Upgrades>, mut request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    if value("transport") == Some("websocket")
        && let Some(session) = value("sid").filter(|session| session.len() <= SESSION_BYTES_MAX)
        && let Some(ConnectInfo(line)) = request.extensions().get::<ConnectInfo<Scissors>>()
    {
        upgrades.note(session.to_owned(), line);
    }
    let session = value("sid").map(str::to_owned);
    request.extensions_mut().insert(upgrades.clone());
    let response = next.run(request).await;
    // Only now: it may have been shut while this poll waited.
    let is_shut = session.is_some_and(|session| upgrades.is_shut(&session));
    // The request was let through all the same: what it takes out of the buffer makes room for the socket to be closed. Its client is
    // told what the engine tells one whose session it does not know, and that one comes back.
    if is_shut {
        return (StatusCode::BAD_REQUEST, r#"{"code":1,"message":"Session ID unknown"}"#).into_response();
    }
    response
}

/// An Engine.IO session id has 16 bytes here.
const SESSION_BYTES_MAX: usize = 16;

/// How long nothing was heard of a client on its connection, the engine's own packets included. `None` for one that polls: its
/// connections come and go.
pub(crate) fn silence(socket: &SocketRef) -> Option<Duration> {
    if socket.transport_type() == TransportType::Polling {
        return None;
    }
    let extensions = &socket.req_parts().extensions;
    let upgraded = extensions.get::<Upgrades>().and_then(|upgrades| upgrades.silence(socket.id.as_str()));
    upgraded.or_else(|| extensions.get::<ConnectInfo<Scissors>>().map(|ConnectInfo(line)| line.silence()))
}

/// Cuts the client off, once.
pub(crate) fn cut_off(socket: &SocketRef) {
    if socket.extensions.insert(Shed).is_some() {
        return;
    }
    metrics::counter!("pointwork_slow_consumers_total").increment(1);
    tracing::info!(socket = %socket.id, "a client does not take what it is sent and is cut off");
    cut_line(socket);
    if socket.transport_type() == TransportType::Polling {
        shut_session(socket);
    }
}

/// Ends a client's connection because this replica shuts down. To be done to each of its sockets.
pub(crate) fn hang_up(socket: &SocketRef) {
    socket.extensions.insert(HungUp);
    if socket.transport_type() == TransportType::Polling {
        // The connection may be a proxy's, and others' polls on it too.
        shut_session(socket);
    } else {
        cut_line(socket);
    }
}

/// Whether the client's connection was ended by [`hang_up`].
pub(crate) fn was_hung_up(socket: &SocketRef) -> bool {
    socket.extensions.get::<HungUp>().is_some()
}

fn cut_line(socket: &SocketRef) {
    let extensions = &socket.req_parts().extensions;
    let was_upgraded = extensions.get::<Upgrades>().is_some_and(|upgrades| upgrades.cut(socket.id.as_str()));
    if !was_upgraded && let Some(ConnectInfo(line)) = extensions.get::<ConnectInfo<Scissors>>() {
        line.cut();
    }
}

/// Ends the session of a client that polls: it outlives its connections. That it is closed must not be told to it, or it stays away;
/// this waits for a place in the buffer that its next poll empties.
fn shut_session(socket: &SocketRef) {
    if let Some(upgrades) = socket.req_parts().extensions.get::<Upgrades>() {
        upgrades.shut(socket.id.as_str());
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_ended_are_forgotten() {
        let upgrades = Upgrades::default();
        let living = Scissors::default();
        upgrades.note("living".into(), &living);
        for session in 0..10_000 {
            upgrades.note(session.to_string(), &Scissors::default());
        }
        assert!(lock(&upgrades.0).len() < 100);
        assert!(upgrades.cut("living"));
        assert!(!upgrades.cut("living") && !upgrades.cut("unknown"));
    }
}
