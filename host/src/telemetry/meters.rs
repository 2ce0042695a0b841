//! Metrics that are counted on every event: each is looked up once, not each time.

use std::sync::LazyLock;

use metrics::{Counter, Gauge};

/// Their handles.
pub(crate) struct Meters {
    sockets: [Gauge; 3],
    events: [Counter; EventKind::NAMES.len()],
}

/// What a client is for, as its sockets are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientScope {
    User,
    Session,
    Machine,
}

/// What came from a client, as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Register,
    Unregister,
    Call,
    Result,
    Resumed,
    Ping,
    SessionAlive,
    SessionEnd,
    MachineAlive,
    Other,
}

impl EventKind {
    /// In the order of the kinds.
    pub(super) const NAMES: [&'static str; 10] = [
        "rpc-register",
        "rpc-unregister",
        "rpc-call",
        "rpc-result",
        "rpc-resumed",
        "ping",
        "session-alive",
        "session-end",
        "machine-alive",
        "other",
    ];
}

/// The handles. Not to be called before the metrics were started: whatever is counted would be lost.
pub(crate) fn meters() -> &'static Meters {
    static METERS: LazyLock<Meters> = LazyLock::new(|| Meters {
        sockets: ["user-scoped", "session-scoped", "machine-scoped"]
            .map(|scope| metrics::gauge!("websocket_connections_total", "type" => scope)),
        events: EventKind::NAMES.map(|name| metrics::counter!("websocket_events_total", "event_type" => name)),
    });
    &METERS
}

impl Meters {
    pub(crate) fn event(&self, kind: EventKind) {
        self.events[kind as usize].increment(1);
    }

    pub(crate) fn connected(&self, scope: ClientScope) {
        self.sockets[scope as usize].increment(1.0);
    }

    pub(crate) fn disconnected(&self, scope: ClientScope) {
        self.sockets[scope as usize].decrement(1.0);
    }
}
