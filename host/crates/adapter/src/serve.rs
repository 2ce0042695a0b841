//! What other servers ask of this one.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rmpv::Value;

use crate::error::ClusterError;
use crate::local::{Acks, Local};
use crate::namespace::{Description, Namespace, RequestEnd};
use crate::recall::{self, Serving};
use crate::wire::{
    Answer, Body, Broadcast, ClientCount, FetchSockets, FetchSocketsResponse, Message, RemoteSocket, ServerSideEmit,
};

/// Does what a message says. Local delivery is done when this returns, so messages do not change places.
pub(crate) fn message(namespace: &Arc<Namespace>, local: &Arc<dyn Local>, message: Message) {
    let from = message.uid;
    match message.body {
        Body::Broadcast(Broadcast { packet, request_id: None, opts }) => {
            local.broadcast(packet, &opts, true);
        }
        Body::Broadcast(Broadcast { packet, request_id: Some(request_id), opts }) => {
            let ended = namespace.trace_of(&opts.flags);
            let timeout = opts.flags.timeout_ms().map(Duration::from_millis);
            let (client_count, acks) = local.broadcast_with_ack(packet, &opts, timeout);
            if client_count == 0 || !opts.flags.uncounted() {
                let count = ClientCount { request_id: request_id.clone(), client_count };
                answer(namespace, &from, Body::BroadcastClientCount(count));
            }
            if client_count > 0 {
                let serving = namespace.serving(&request_id, opts.rooms);
                tokio::spawn(pass_on(namespace.clone(), from, request_id, acks, serving, ended));
            } else if let Some(ended) = ended {
                ended(false);
            }
        }
        Body::SocketsJoin(change) => local.join(&change.opts, change.rooms),
        Body::SocketsLeave(change) => local.leave(&change.opts, change.rooms),
        Body::DisconnectSockets(disconnect) => local.disconnect(&disconnect.opts),
        Body::FetchSockets(FetchSockets { opts, request_id }) => {
            let sockets = local.sockets(&opts).into_iter();
            let sockets = sockets.map(|(sid, rooms)| {
                let Description { handshake, data } = namespace.description(sid);
                let data = if data.is_nil() { Value::Map(Vec::new()) } else { data };
                RemoteSocket { id: sid.to_string(), handshake: whole(handshake), rooms, data }
            });
            let response = FetchSocketsResponse { request_id, sockets: sockets.collect() };
            answer(namespace, &from, Body::FetchSocketsResponse(response));
        }
        Body::ServerSideEmit(ServerSideEmit { request_id, packet }) => {
            let mut packet = packet.into_iter();
            let Some(Value::String(name)) = packet.next() else { return };
            let packet = namespace.answer_to(name.as_str().unwrap_or_default(), packet.collect());
            if let Some(request_id) = request_id {
                answer(namespace, &from, Body::ServerSideEmitResponse(Answer { request_id, packet }));
            }
        }
        // Answers go to their requests; the rest is of versions that this wire is not.
        _ => {}
    }
}

/// Hands an answer over; `false` when it cannot be.
fn answer(namespace: &Namespace, to: &str, body: Body) -> bool {
    let Err(error) = namespace.publish(Some(to), body, None) else { return true };
    metrics::counter!("adapter_answers_failed_total").increment(1);
    tracing::debug!(%error, to, "an answer to another server was not sent");
    if let (ClusterError::Outbox(_), Some(inner)) = (&error, namespace.inner())
        && let Some(shared) = inner.shared()
    {
        shared.note_lost();
    }
    false
}

/// Sends on each ack as it comes. All are handed over when `serving` ends.
async fn pass_on(
    namespace: Arc<Namespace>,
    to: String,
    request_id: String,
    mut acks: Acks,
    serving: Option<Serving>,
    ended: Option<RequestEnd>,
) {
    let mut has_answered = false;
    while let Some(packet) = next(acks.as_mut()).await {
        has_answered |= answer(&namespace, &to, Body::BroadcastAck(Answer { request_id: request_id.clone(), packet }));
    }
    if let Some(ended) = ended {
        ended(has_answered);
    }
    if !has_answered && let Some(inner) = namespace.inner() {
        recall::tell_unanswered(&inner, &to, &request_id);
    }
    drop(serving);
}

async fn next(mut acks: Pin<&mut (dyn futures_core::Stream<Item = Value> + Send)>) -> Option<Value> {
    std::future::poll_fn(|cx| acks.as_mut().poll_next(cx)).await
}

/// A handshake with all keys that Node's callers may read.
fn whole(mut given: Vec<(Value, Value)>) -> Value {
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
        if !given.iter().any(|(name, _)| name.as_str() == Some(key)) {
            given.push((key.into(), value));
        }
    }
    Value::Map(given)
}
