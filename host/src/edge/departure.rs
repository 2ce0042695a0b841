//! Says why a client is gone: what the policies and the other replicas are told when its socket ends.

use pointwork_core::decision::Departure;
use socketioxide::socket::DisconnectReason;

use crate::edge::{slow_clients::was_hung_up, socketio::SocketRef};

/// Why a client is gone: because this replica shuts down, if it was closed for that and did not leave by itself; else as the
/// disconnect says.
pub(crate) fn departure(socket: &SocketRef, reason: DisconnectReason) -> Departure {
    match said(reason) {
        Departure::TransportLost | Departure::Evicted if was_hung_up(socket) => Departure::Drained,
        departure => departure,
    }
}

/// What a disconnect says of where the client went. A client that leaves on purpose says so; a connection that merely ends,
/// however gently, is that of a process that died or a network that changed.
fn said(reason: DisconnectReason) -> Departure {
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
    fn only_a_client_that_says_goodbye_has_closed() {
        assert_eq!(said(DisconnectReason::ClientNSDisconnect), Departure::Closed);
        for broken in
            [DisconnectReason::TransportClose, DisconnectReason::TransportError, DisconnectReason::HeartbeatTimeout]
        {
            assert_eq!(said(broken), Departure::TransportLost, "{broken:?}");
        }
    }
}
