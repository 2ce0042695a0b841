//! The task that takes what comes by PUB/SUB.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use metrics::Counter;
use tokio::time::{Duration, sleep};

use crate::beat;
use crate::cluster::{Inner, NOTE_MIN, PEERS_NSP, Shared};
use crate::parcel;
use crate::recall;
use crate::transport::Received;
use crate::wire::{Body, Message, Other, pubsub};

/// The pauses between two tries to subscribe.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// Runs until the transport is closed.
pub(crate) async fn run(inner: Arc<Inner>) {
    let Some(shared) = inner.shared() else { return };
    let channels = vec![shared.channels.public.clone(), shared.channels.private.clone()];
    subscribe(shared, channels).await;
    // Not before: whoever heard of this replica may ask it something, and it would not hear that.
    tokio::spawn(beat::run(inner.clone()));
    let received = metrics::counter!("adapter_received_total", "medium" => "channel");
    loop {
        match shared.transport.receive().await {
            Received::Message { payload, .. } => match pubsub::decode(&payload, &inner.settings.limits) {
                Ok(message) => take(&inner, shared, message, &received),
                Err(error) => {
                    metrics::counter!("adapter_malformed_total", "medium" => "channel").increment(1);
                    tracing::debug!(%error, "a message by PUB/SUB is malformed");
                }
            },
            Received::Missed(messages) => {
                metrics::counter!("adapter_channel_missed_total").increment(messages);
                tracing::warn!(messages, "messages came in faster than they were taken, and are lost");
                recall::recall_all(&inner, shared);
            }
            Received::Interrupted => {
                shared.interruptions.fetch_add(1, Ordering::Relaxed);
                inner.step(|peers, now| peers.handle_interrupted(now));
                beat::away(&inner);
                shared.requests.fail_those(|server| server.is_none());
            }
            Received::Restored => beat::send(&inner, true),
            Received::Closed => return,
        }
    }
}

/// Subscribes for good, and tries again until it is done.
pub(crate) async fn subscribe(shared: &Shared, channels: Vec<String>) {
    shared.attaching.fetch_add(1, Ordering::Relaxed);
    let mut pause = PAUSE_MIN;
    while !*shared.stop.borrow() {
        match shared.transport.subscribe(channels.clone()).await {
            Ok(()) => break,
            Err(error) => tracing::debug!(%error, "not subscribed yet"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
    shared.attaching.fetch_sub(1, Ordering::Relaxed);
}

fn take(inner: &Arc<Inner>, shared: &Shared, message: Message, received: &Counter) {
    if message.nsp == PEERS_NSP {
        return peer(inner, shared, message, received);
    }
    if message.uid == inner.uid {
        return;
    }
    received.increment(1);
    if message.body.answers().is_some() {
        return shared.requests.answer(message.uid, message.body);
    }
    if let Some(namespace) = inner.find(&message.nsp) {
        namespace.take(message);
    }
}

/// What a replica of this kind told.
fn peer(inner: &Arc<Inner>, shared: &Shared, message: Message, received: &Counter) {
    let Body::Other(Other { number, data }) = message.body else { return };
    match number {
        beat::BEAT if message.uid == inner.uid => beat::echoed(inner, shared),
        _ if message.uid == inner.uid => {}
        parcel::PARCEL => parcel::open(inner, data).for_each(|message| take(inner, shared, message, received)),
        beat::BEAT => beat::heard(inner, shared, &message.uid, &data),
        recall::RECALL => recall::answer(inner, shared, &message.uid, &data),
        recall::UNSERVED => recall::unserved(shared, &data),
        recall::UNANSWERED => recall::unanswered(shared, &data),
        beat::FAREWELL => {
            inner.step(|peers, _| peers.handle_farewell(&message.uid));
        }
        beat::AWAY => {
            inner.step(|peers, _| peers.handle_away(&message.uid));
        }
        NOTE_MIN.. => {
            // One that is not followed (yet, or any more) is not watched either: it would never be known to be lost.
            let is_known = inner.step(|peers, _| peers.knows(&message.uid)) == Some(true);
            if is_known && let Some(listener) = inner.listener() {
                listener.note(&message.uid, number, data);
            }
        }
        _ => {}
    }
}
