//! Carries out what other servers ask of this replica, and answers them.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::StreamExt;
use rmpv::Value;

use super::served_requests::{ServedRequest, ServedRequests};
use crate::error::ClusterError;
use crate::outbox::Publisher;
use crate::sockets::{Acks, Description, LocalNamespace, LocalSockets, RequestEnd};
use crate::wire::{
    Answer, Body, Broadcast, ClientCount, FetchSockets, FetchSocketsResponse, Message, RemoteSocket, ServerSideEmit,
    UNANSWERED,
};

/// Serves the requests of other servers.
pub(crate) struct RequestServer {
    pub(crate) publisher: Arc<Publisher>,
    pub(crate) served: Arc<ServedRequests>,
}

/// A broadcast with acknowledgements that is being served.
struct OngoingBroadcast {
    namespace: Arc<LocalNamespace>,
    /// The server that asked.
    server: String,
    request_id: String,
    acks: Acks,
    /// Called at the end, if the request is part of a trace.
    on_end: Option<RequestEnd>,
    _served: ServedRequest,
}

impl RequestServer {
    /// Carries out a message of another server. Local delivery is done when this returns, so messages keep their order.
    pub(crate) fn handle_message(self: &Arc<Self>, namespace: &Arc<LocalNamespace>, message: Message) {
        let Some(sockets) = namespace.sockets() else { return };
        let Message { uid: server, body, .. } = message;
        match body {
            Body::Broadcast(broadcast) => self.broadcast(namespace, &*sockets, server, broadcast),
            Body::SocketsJoin(change) => sockets.join(&change.opts, change.rooms),
            Body::SocketsLeave(change) => sockets.leave(&change.opts, change.rooms),
            Body::DisconnectSockets(disconnect) => sockets.disconnect(&disconnect.opts),
            Body::FetchSockets(FetchSockets { opts, request_id }) => {
                let selected = sockets.sockets(&opts).into_iter();
                let sockets =
                    selected.map(|(sid, rooms)| remote_socket(namespace.description(sid), sid.to_string(), rooms));
                let response = FetchSocketsResponse { request_id, sockets: sockets.collect() };
                self.answer(namespace, &server, Body::FetchSocketsResponse(response));
            }
            Body::ServerSideEmit(ServerSideEmit { request_id, packet }) => {
                let mut packet = packet.into_iter();
                let Some(Value::String(name)) = packet.next() else { return };
                let packet = namespace.answer_event(name.as_str().unwrap_or_default(), packet.collect());
                if let Some(request_id) = request_id {
                    self.answer(namespace, &server, Body::ServerSideEmitResponse(Answer { request_id, packet }));
                }
            }
            // Answers are passed to their requests elsewhere. The other types belong to versions that are not supported.
            _ => {}
        }
    }

    fn broadcast(
        self: &Arc<Self>,
        namespace: &Arc<LocalNamespace>,
        sockets: &dyn LocalSockets,
        server: String,
        broadcast: Broadcast,
    ) {
        let Broadcast { packet, request_id, opts } = broadcast;
        let Some(request_id) = request_id else { return sockets.broadcast(packet, &opts, true) };
        let on_end = namespace.trace_request(&opts.flags);
        let timeout = opts.flags.timeout_ms().map(Duration::from_millis);
        let (client_count, acks) = sockets.broadcast_with_ack(packet, &opts, timeout);
        if client_count == 0 || !opts.flags.uncounted() {
            let count = ClientCount { request_id: request_id.clone(), client_count };
            self.answer(namespace, &server, Body::BroadcastClientCount(count));
        }
        if client_count > 0 {
            let _served = self.served.begin(&request_id, opts.rooms);
            let namespace = namespace.clone();
            let ongoing = OngoingBroadcast { namespace, server, request_id, acks, on_end, _served };
            tokio::spawn(self.clone().forward_acks(ongoing));
        } else if let Some(on_end) = on_end {
            on_end(false);
        }
    }

    /// Forwards each acknowledgement as it arrives. All are in the outbox before the request counts as served no more.
    async fn forward_acks(self: Arc<Self>, mut ongoing: OngoingBroadcast) {
        let mut has_answered = false;
        while let Some(packet) = ongoing.acks.next().await {
            let ack = Answer { request_id: ongoing.request_id.clone(), packet };
            has_answered |= self.answer(&ongoing.namespace, &ongoing.server, Body::BroadcastAck(ack));
        }
        if let Some(on_end) = ongoing.on_end.take() {
            on_end(has_answered);
        }
        if !has_answered {
            let (peer, ids) = (ongoing.server.as_str(), Value::Array(vec![ongoing.request_id.as_str().into()]));
            if let Err(error) = self.publisher.publish_to_replicas(Some(peer), UNANSWERED, ids) {
                tracing::debug!(%error, peer, "could not tell a peer that its request will not be answered");
            }
        }
    }

    /// Sends an answer; `false` if it cannot be sent.
    fn answer(&self, namespace: &LocalNamespace, server: &str, body: Body) -> bool {
        let Err(error) = self.publisher.publish(&namespace.path, Some(server), body, None) else { return true };
        metrics::counter!("adapter_answers_failed_total").increment(1);
        tracing::debug!(%error, server, "could not answer another server");
        if matches!(error, ClusterError::Outbox(_)) {
            self.publisher.note_lost_message();
        }
        false
    }
}

fn remote_socket(description: Description, id: String, rooms: Vec<String>) -> RemoteSocket {
    let Description { handshake, data } = description;
    let data = if data.is_nil() { Value::Map(Vec::new()) } else { data };
    RemoteSocket { id, handshake: complete_handshake(handshake), rooms, data }
}

/// Adds the keys that callers on Node read without checking that they exist.
fn complete_handshake(mut handshake: Vec<(Value, Value)>) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let issued_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let empty = || Value::Map(Vec::new());
    let defaults: [(&str, Value); 9] = [
        ("headers", empty()),
        ("time", "".into()),
        ("address", "".into()),
        ("xdomain", false.into()),
        ("secure", false.into()),
        ("issued", issued_ms.into()),
        ("url", "".into()),
        ("query", empty()),
        ("auth", empty()),
    ];
    for (key, value) in defaults {
        if !handshake.iter().any(|(name, _)| name.as_str() == Some(key)) {
            handshake.push((key.into(), value));
        }
    }
    Value::Map(handshake)
}
