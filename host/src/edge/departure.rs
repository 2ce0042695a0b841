//! Classifies why a client is gone, for policies and other replicas.

use pointwork_core::decisions::Departure;
use socketioxide::socket::DisconnectReason;

use crate::edge::{disconnect::was_disconnected_for_shutdown, socketio::SocketRef};

/// Why a client is gone. If this replica disconnected it for the shutdown, the reason is the drain, unless the client left first.
pub(crate) fn departure(socket: &SocketRef, reason: DisconnectReason) -> Departure {
    match of_disconnect(reason) {
        Departure::TransportLost | Departure::Evicted if was_disconnected_for_shutdown(socket) => Departure::Drained,
        departure => departure,
    }
}

/// What the disconnect alone means. A client that leaves on purpose sends a disconnect packet. A connection that only ends belongs to a
/// process that died or a network that changed.
fn of_disconnect(reason: DisconnectReason) -> Departure {
    match reason {
        DisconnectReason::ClientNSDisconnect => Departure::Closed,
        DisconnectReason::ServerNSDisconnect => Departure::Evicted,
        DisconnectReason::ClosingServer => Departure::Drained,
        DisconnectReason::TransportClose
        | DisconnectReason::MultipleHttpPollingError
        | DisconnectReason::PacketParsingError
        | DisconnectReason::TransportError
        | DisconnectReason::HeartbeatTimeout => Departure::TransportLost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_client_that_sends_a_disconnect_has_closed() {
        assert_eq!(of_disconnect(DisconnectReason::ClientNSDisconnect), Departure::Closed);
        for broken in
            [DisconnectReason::TransportClose, DisconnectReason::TransportError, DisconnectReason::HeartbeatTimeout]
        {
            assert_eq!(of_disconnect(broken), Departure::TransportLost, "{broken:?}");
        }
    }
}
