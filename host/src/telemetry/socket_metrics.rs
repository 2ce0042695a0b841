//! Counts sockets and events. The handles of these metrics are looked up once, because every event needs one.

use std::sync::LazyLock;

use metrics::{Counter, Gauge};

use super::label_values::label_values;

/// The handles of these metrics.
pub(crate) struct SocketMetrics {
    sockets: [Gauge; ClientScope::LABELS.len()],
    events: [Counter; EventKind::LABELS.len()],
}

label_values! {
    /// The scope of a client, as a label.
    pub(crate) enum ClientScope {
        User = "user-scoped",
        Session = "session-scoped",
        Machine = "machine-scoped",
    }
}

label_values! {
    /// The kind of an event from a client, as a label.
    pub(crate) enum EventKind {
        Register = "rpc-register",
        Unregister = "rpc-unregister",
        Call = "rpc-call",
        Result = "rpc-result",
        Resumed = "rpc-resumed",
        Ping = "ping",
        SessionAlive = "session-alive",
        SessionEnd = "session-end",
        MachineAlive = "machine-alive",
        Other = "other",
    }
}

/// The handles. Do not call this before the metrics are started, or all counts are lost.
pub(crate) fn socket_metrics() -> &'static SocketMetrics {
    static SOCKET_METRICS: LazyLock<SocketMetrics> = LazyLock::new(|| SocketMetrics {
        sockets: ClientScope::LABELS.map(|scope| metrics::gauge!("websocket_connections_total", "type" => scope)),
        events: EventKind::LABELS.map(|name| metrics::counter!("websocket_events_total", "event_type" => name)),
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
