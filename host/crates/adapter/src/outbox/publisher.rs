//! Publishes messages to other servers, and remembers losses that it must still announce.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rmpv::Value;

use super::queue::{OnLost, Outbox, QueuedMessage};
use crate::error::ClusterError;
use crate::settings::Settings;
use crate::transport::Outgoing;
use crate::wire::{BROADCASTS_LOST, Body, Channels, Message, Other, REPLICAS_NSP, pubsub, stream::Entry};

/// Encodes messages and puts them into the outbox.
pub(crate) struct Publisher {
    pub(crate) uid: String,
    pub(crate) settings: Arc<Settings>,
    pub(crate) outbox: Outbox,
    /// The channels of replicas of this kind.
    pub(crate) replica_channels: Channels,
    /// How often messages to or from this replica may have been lost. Peers get it with each heartbeat, and ask about their requests
    /// when it grows.
    interruptions: AtomicU64,
    /// Broadcasts of this replica may not have got into the stream. The loss must be announced to all replicas.
    are_broadcasts_lost: AtomicBool,
    /// Messages by PUB/SUB may be lost. This replica must ask its peers about its own requests.
    is_status_request_due: AtomicBool,
}

impl Publisher {
    pub(crate) fn new(uid: &str, settings: Arc<Settings>) -> Self {
        Publisher {
            uid: uid.to_owned(),
            outbox: Outbox::new(settings.outbox_messages_max, settings.outbox_bytes_max),
            replica_channels: Channels::new(&settings.channel_prefix, REPLICAS_NSP, uid),
            settings,
            interruptions: AtomicU64::new(0),
            are_broadcasts_lost: AtomicBool::new(false),
            is_status_request_due: AtomicBool::new(false),
        }
    }

    /// Publishes a message of a namespace to every server (`None`) or to one. `request` fails if the message cannot be sent.
    pub(crate) fn publish(
        &self,
        nsp: &str,
        server: Option<&str>,
        body: Body,
        request: Option<String>,
    ) -> Result<(), ClusterError> {
        let prefix = &self.settings.channel_prefix;
        let channel = match server {
            Some(server) => Channels::private_of(prefix, nsp, server),
            None => Channels::public_of(prefix, nsp),
        };
        let payload = pubsub::encode(&self.message(nsp, body), &self.settings.limits)?;
        let outgoing = Outgoing::Publish { channel: channel.into(), payload: payload.into() };
        Ok(self.outbox.push(QueuedMessage { outgoing, request, on_lost: None })?)
    }

    /// Publishes a message to all replicas of this kind (`None`) or to one.
    pub(crate) fn publish_to_replicas(&self, peer: Option<&str>, number: u32, data: Value) -> Result<(), ClusterError> {
        self.publish(REPLICAS_NSP, peer, Body::Other(Other { number, data }), None)
    }

    /// Appends a message to the stream. `on_lost` is called if the message turns out not to have got there.
    pub(crate) fn append(&self, nsp: &str, body: Body, on_lost: Option<OnLost>) -> Result<(), ClusterError> {
        let appended = self.try_append(nsp, body, on_lost);
        if appended.is_err() {
            self.note_lost_broadcast();
        }
        appended
    }

    fn try_append(&self, nsp: &str, body: Body, on_lost: Option<OnLost>) -> Result<(), ClusterError> {
        let entry = Entry::encode(&self.message(nsp, body), &self.settings.limits)?;
        let outgoing = Outgoing::Append {
            stream: self.settings.stream_name.as_str().into(),
            fields: entry.fields().map(|(name, value)| (name, value.into_owned())).collect(),
            len_max: self.settings.stream_len_max,
        };
        Ok(self.outbox.push(QueuedMessage { outgoing, request: None, on_lost })?)
    }

    /// A broadcast of this replica may not have got into the stream.
    pub(crate) fn note_lost_broadcast(&self) {
        self.are_broadcasts_lost.store(true, Ordering::Relaxed);
    }

    /// Appends to the stream that broadcasts of this replica did not get there, if that is so.
    pub(crate) fn announce_lost_broadcasts(&self) {
        if self.are_broadcasts_lost.swap(false, Ordering::Relaxed) {
            let body = Body::Other(Other { number: BROADCASTS_LOST, data: Value::Nil });
            if let Err(error) = self.append(REPLICAS_NSP, body, None) {
                tracing::debug!(%error, "could not announce lost broadcasts yet");
            }
        }
    }

    /// A message that this replica published may be lost. Peers that wait for it ask at the next heartbeat. This replica asks too,
    /// because the message may have been a request.
    pub(crate) fn note_lost_message(&self) {
        self.note_interruption();
        self.is_status_request_due.store(true, Ordering::Relaxed);
    }

    /// Whether messages were lost since this was last called.
    pub(crate) fn take_status_request_due(&self) -> bool {
        self.is_status_request_due.swap(false, Ordering::Relaxed)
    }

    /// The subscription of this replica was interrupted.
    pub(crate) fn note_interruption(&self) {
        self.interruptions.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn interruptions(&self) -> u64 {
        self.interruptions.load(Ordering::Relaxed)
    }

    fn message(&self, nsp: &str, body: Body) -> Message {
        Message { uid: self.uid.clone(), nsp: nsp.to_owned(), body }
    }
}
