//! Clients that know their place in the stream of broadcasts: they get what they missed, or are told that it is lost.

use serde_json::json;
use socketioxide_redis_streams::{Follower, Following, Gap, Namespace, transport::EntryId};
use std::sync::Arc;

use crate::edge::{disconnect::disconnect_slow_client, send::emit, socketio::SocketRef};

/// Follows the stream for a socket in `rooms`, from the place that its client names, if it names one.
pub(super) fn follow(
    namespace: &Arc<Namespace>,
    socket: &SocketRef,
    rooms: Vec<String>,
    last_offset: Option<&str>,
) -> Following {
    let from = last_offset.map(str::parse::<EntryId>);
    // A place that is none is one that nobody knows, and its client has a gap up to here.
    let is_lost = matches!(from, Some(Err(_)));
    let client = Client { socket: socket.clone(), is_lost };
    namespace.follow(socket.id, rooms, from.and_then(Result::ok), Arc::new(client))
}

/// What the client is told between its broadcasts.
struct Client {
    socket: SocketRef,
    /// It named a place that is none.
    is_lost: bool,
}

impl Follower for Client {
    fn began(&self, at: EntryId) {
        if self.is_lost {
            return self.gap(Gap::Unknown, Some(at));
        }
        emit(&self.socket, "offset", &json!({ "at": at.to_string() }));
    }

    fn recovered(&self, from: EntryId, to: EntryId) {
        emit(&self.socket, "recovered", &json!({ "from": from.to_string(), "to": to.to_string() }));
    }

    fn gap(&self, gap: Gap, to: Option<EntryId>) {
        metrics::counter!("pointwork_gaps_total", "reason" => gap.name()).increment(1);
        emit(&self.socket, "gap", &json!({ "reason": gap.name(), "to": to.map(|to| to.to_string()) }));
    }

    fn overrun(&self) {
        metrics::counter!("pointwork_deliveries_failed_total").increment(1);
        disconnect_slow_client(&self.socket);
    }
}
