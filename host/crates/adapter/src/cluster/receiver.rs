//! Receives messages by PUB/SUB, and passes each to the part of the replica that handles it.

use std::sync::Arc;

use metrics::Counter;

use super::heartbeat_task;
use super::link::ClusterLink;
use crate::outbox::unpack;
use crate::transport::Received;
use crate::wire::{
    BATCH, Body, FAREWELL, HEARTBEAT, INTERRUPTED, Message, NOT_SERVED, NOTE_MIN, Other, REPLICAS_NSP, STATUS_REQUEST,
    UNANSWERED, pubsub,
};

/// Runs until the transport is closed.
pub(super) async fn run(link: Arc<ClusterLink>) {
    let channels = link.publisher.replica_channels.clone();
    link.subscribe(vec![channels.public, channels.private]).await;
    // Heartbeats start after the subscription: a peer that hears of this replica may send it a request at once.
    tokio::spawn(heartbeat_task::run(link.clone()));
    let received = metrics::counter!("adapter_received_total", "medium" => "channel");
    loop {
        match link.transport().receive().await {
            Received::Message { payload, .. } => match pubsub::decode(&payload, &link.settings().limits) {
                Ok(message) => handle_message(&link, message, &received),
                Err(error) => {
                    metrics::counter!("adapter_malformed_total", "medium" => "channel").increment(1);
                    tracing::debug!(%error, "a message by PUB/SUB is malformed");
                }
            },
            Received::Missed(messages) => {
                metrics::counter!("adapter_channel_missed_total").increment(messages);
                tracing::warn!(messages, "messages came in faster than they were taken, and are lost");
                link.ask_about_lost_requests();
            }
            Received::Interrupted => heartbeat_task::handle_interruption(&link),
            Received::Restored => heartbeat_task::send(&link, None, true),
            Received::Closed => return,
        }
    }
}

fn handle_message(link: &ClusterLink, message: Message, received: &Counter) {
    if message.nsp == REPLICAS_NSP {
        return handle_replica_message(link, message, received);
    }
    if message.uid == link.publisher.uid {
        return;
    }
    received.increment(1);
    if message.body.answers().is_some() {
        return link.requests.handle_answer(message.uid, message.body);
    }
    if let Some(namespace) = link.source.namespaces.get(&message.nsp) {
        link.server.handle_message(&namespace, message);
    }
}

/// Handles a message of a replica of this kind.
fn handle_replica_message(link: &ClusterLink, message: Message, received: &Counter) {
    let Message { uid, body: Body::Other(Other { number, data }), .. } = message else { return };
    if uid == link.publisher.uid {
        if number == HEARTBEAT {
            heartbeat_task::handle_echo(link);
        }
        return;
    }
    match number {
        BATCH => unpack(data, &link.settings().limits).for_each(|message| handle_message(link, message, received)),
        HEARTBEAT => heartbeat_task::handle_heartbeat(link, &uid, &data),
        STATUS_REQUEST => link.lost_requests.handle_status_request(&uid, &data),
        NOT_SERVED => link.lost_requests.handle_not_served(&data),
        UNANSWERED => link.lost_requests.handle_unanswered(&data),
        FAREWELL => link.peers.step(|peers, _| peers.handle_farewell(&uid)),
        INTERRUPTED => link.peers.step(|peers, _| peers.handle_peer_interrupted(&uid)),
        NOTE_MIN.. => {
            // Notes of an unknown peer are ignored: nobody would notice when it is lost.
            let is_known = link.peers.read(|peers, _| peers.knows(&uid));
            if is_known && let Some(listener) = link.peers.listener() {
                listener.note(&uid, number, data);
            }
        }
        _ => {}
    }
}
