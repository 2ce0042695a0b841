//! Delivers new broadcasts to the sockets that follow the stream.

use std::sync::Arc;

use super::event::FollowedEvent;
use super::followed_stream::{FollowedStream, Overrun, StreamOrder};
use super::follower::Gap;
use super::log::{EntryContent, LogEntry};
use super::offsets;
use crate::sockets::LocalNamespace;
use crate::transport::EntryId;

impl FollowedStream {
    /// An entry was read. Returns whether the entry can be skipped because no socket follows.
    pub(super) fn try_skip(&self, id: EntryId) -> bool {
        let mut order = self.order.lock();
        if order.log.is_none() {
            order.last = Some(id);
        }
        order.log.is_none()
    }

    /// An entry was read. `namespace` is that of its event, if it holds one.
    pub(super) fn handle_entry(&self, id: EntryId, namespace: Option<&Arc<LocalNamespace>>, content: EntryContent) {
        let mut overrun = Overrun::default();
        let mut order = self.order.lock();
        self.push(&mut order, id, namespace, content, &mut overrun);
    }

    /// Takes a broadcast of a replica that shares no cluster, as its reader would. `event` encodes it with its offset. Returns `false`
    /// if it cannot be encoded.
    pub(crate) fn handle_own_broadcast(
        &self,
        namespace: &Arc<LocalNamespace>,
        event: impl FnOnce(EntryId) -> Option<FollowedEvent>,
    ) -> bool {
        let mut overrun = Overrun::default();
        let mut order = self.order.lock();
        if order.log.is_none() {
            return true;
        }
        let id = offsets::next_id(order.last);
        let Some(event) = event(id) else { return false };
        self.push(&mut order, id, Some(namespace), EntryContent::Event(event), &mut overrun);
        true
    }

    fn push(
        &self,
        order: &mut StreamOrder,
        id: EntryId,
        namespace: Option<&Arc<LocalNamespace>>,
        content: EntryContent,
        overrun: &mut Overrun,
    ) {
        let before = order.last.replace(id);
        order.entries_read += 1;
        match (&content, namespace) {
            (EntryContent::Event(event), Some(namespace)) => self.deliver(namespace, event, id, overrun),
            (EntryContent::Loss, _) => self.report_loss(id),
            _ => {}
        }
        let Some(log) = &mut order.log else { return };
        log.push(LogEntry { id, content });
        for (key, from, ..) in self.followers.catching_up() {
            if from <= id && before.is_none_or(|before| from > before) {
                self.try_settle(order, key, from, overrun);
            }
        }
    }

    /// Broadcasts never got into the stream. Every follower that gets new broadcasts has missed them.
    fn report_loss(&self, id: EntryId) {
        for (_, followed, pending) in self.followers.all() {
            if pending.is_none() {
                followed.follower.gap(Gap::Unreachable, Some(id));
            }
        }
    }

    fn deliver(&self, namespace: &LocalNamespace, event: &FollowedEvent, id: EntryId, overrun: &mut Overrun) {
        let Some(sockets) = namespace.sockets() else { return };
        if self.followers.is_empty() {
            return;
        }
        for socket in self.followers.live(namespace.number, sockets.select(&event.opts), id) {
            if !sockets.send(&event.data, socket) {
                overrun.add(self.followers.cut((namespace.number, socket)));
            }
        }
    }
}
