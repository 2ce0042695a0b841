//! Counts sockets and events. The handles of these metrics are looked up once, because every event needs one.

use std::sync::LazyLock;

use metrics::{Counter, Gauge};

/// The handles of these metrics.
pub(crate) struct SocketMetrics {
    sockets: [Gauge; 3],
    events: [Counter; EventKind::NAMES.len()],
}

/// The scope of a client, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientScope {
    User,
    Session,
    Machine,
}

/// The kind of an event from a client, as a label.
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

/// The handles. Do not call this before the metrics are started, or all counts are lost.
pub(crate) fn socket_metrics() -> &'static SocketMetrics {
    static SOCKET_METRICS: LazyLock<SocketMetrics> = LazyLock::new(|| SocketMetrics {
        sockets: ["user-scoped", "session-scoped", "machine-scoped"]
            .map(|scope| metrics::gauge!("websocket_connections_total", "type" => scope)),
        events: EventKind::NAMES.map(|name| metrics::counter!("websocket_events_total", "event_type" => name)),
    });
    &SOCKET_METRICS
}

impl SocketMetrics {
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
