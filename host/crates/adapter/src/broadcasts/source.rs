//! Reads entries of the stream from Redis, and decodes those of this replica's namespaces.

use std::sync::Arc;

use super::event::{encode_event, is_followed};
use super::followed_stream::FollowedStream;
use super::log::{EntryContent, LogEntry};
use crate::settings::Settings;
use crate::sockets::{LocalNamespace, LocalNamespaces};
use crate::transport::{Extent, StreamEntry, Transport, TransportError};
use crate::wire::stream::Entry;
use crate::wire::{BROADCASTS_LOST, Body, DecodeError, Message, REPLICAS_NSP};

/// The stream of a cluster, and what this replica needs to read it.
pub(crate) struct StreamSource {
    /// The uid of this replica.
    pub(crate) uid: String,
    pub(crate) settings: Arc<Settings>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) namespaces: Arc<LocalNamespaces>,
    pub(crate) followed: Arc<FollowedStream>,
}

impl StreamSource {
    pub(super) async fn extent(&self) -> Result<Extent, TransportError> {
        self.transport.extent(&self.settings.stream_name).await
    }

    /// What the log keeps of an entry.
    pub(super) fn log_entry(&self, entry: StreamEntry) -> LogEntry {
        let id = entry.id;
        let head = Entry::from_fields(entry.fields, &self.settings.limits);
        if head.as_ref().is_ok_and(is_loss) {
            return LogEntry { id, content: EntryContent::Loss };
        }
        let event = match self.decode(head) {
            Ok(Some((namespace, Message { body: Body::Broadcast(mut broadcast), .. }))) if is_followed(&broadcast) => {
                encode_event(&namespace, &mut broadcast, id)
            }
            _ => None,
        };
        LogEntry { id, content: event.map_or(EntryContent::Other, EntryContent::Event) }
    }

    /// Decodes an entry. `None` if this replica does not have the namespace: its data is not decoded.
    pub(super) fn decode(
        &self,
        head: Result<Entry, DecodeError>,
    ) -> Result<Option<(Arc<LocalNamespace>, Message)>, DecodeError> {
        let head = head?;
        let Some(namespace) = self.namespaces.get(&head.nsp) else { return Ok(None) };
        Ok(Some((namespace, head.decode(&self.settings.limits)?)))
    }
}

/// Whether an entry says that broadcasts before it never got into the stream.
pub(super) fn is_loss(head: &Entry) -> bool {
    head.number == BROADCASTS_LOST && head.nsp == REPLICAS_NSP
}
