//! Cuts off a client that does not take what it is sent.
//!
//! Its connection is ended, not its socket: a client whose socket the server disconnects stays away for good, one whose
//! connection broke comes back and starts afresh.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use axum::{
    extract::{ConnectInfo, Request, State},
    middleware::Next,
    response::Response,
};
use socketioxide::TransportType;

use crate::{
    io::SocketRef,
    line::{Scissors, WeakScissors},
    lock::lock,
};

/// The lines of clients that began by polling and went over to a WebSocket, by the id of their session. The line that a socket
/// remembers is the one it began on.
#[derive(Clone, Default)]
pub(crate) struct Upgrades(Arc<Mutex<HashMap<String, WeakScissors>>>);

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
    request.extensions_mut().insert(upgrades);
    next.run(request).await
}

/// An Engine.IO session id has 16 bytes here.
const SESSION_BYTES_MAX: usize = 16;

/// Cuts the client off, once.
pub(crate) fn cut_off(socket: &SocketRef) {
    if socket.extensions.insert(Shed).is_some() {
        return;
    }
    metrics::counter!("pointwork_slow_consumers_total").increment(1);
    tracing::info!(socket = %socket.id, "a client does not take what it is sent and is cut off");
    let extensions = &socket.req_parts().extensions;
    let was_upgraded = extensions.get::<Upgrades>().is_some_and(|upgrades| upgrades.cut(socket.id.as_str()));
    if !was_upgraded && let Some(ConnectInfo(line)) = extensions.get::<ConnectInfo<Scissors>>() {
        line.cut();
    }
    if socket.transport_type() == TransportType::Polling {
        // Its session outlives its connections. This waits for a place in the buffer that the next poll empties.
        let socket = socket.clone();
        tokio::spawn(async move {
            while let Err(socketioxide::SocketError::InternalChannelFull) = socket.clone().disconnect() {
                tokio::time::sleep(FAREWELL_INTERVAL).await;
            }
        });
    }
}

const FAREWELL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(50);

/// Marks a socket whose client was cut off.
#[derive(Clone)]
struct Shed;

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
