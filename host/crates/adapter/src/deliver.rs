//! What is new, on its way to followers.

use std::sync::Arc;

use socketioxide_core::Value as Encoded;

use crate::alone;
use crate::event::{Event, offset};
use crate::follow::Gap;
use crate::lock::lock;
use crate::log::{Content, Entry};
use crate::namespace::Namespace;
use crate::replay::Unsent;
use crate::tail::{Order, Overrun, Tail};
use crate::transport::EntryId;
use crate::wire::{Broadcast, Options};

impl Tail {
    /// An entry was read, and nobody follows; `false` if somebody does.
    pub(crate) fn pass(&self, id: EntryId) -> bool {
        let mut order = lock(&self.order);
        if order.log.is_none() {
            order.last = Some(id);
        }
        order.log.is_none()
    }

    /// An entry was read. `namespace` is that of its event, if it is one.
    pub(crate) fn push(&self, id: EntryId, namespace: Option<&Arc<Namespace>>, content: Content) {
        let mut overrun = Overrun::default();
        let mut order = lock(&self.order);
        self.take(&mut order, id, namespace, content, &mut overrun);
        drop(order);
    }

    /// A broadcast of a replica that is alone: what a reader would bring.
    pub(crate) fn make(&self, namespace: &Arc<Namespace>, event: impl FnOnce(EntryId) -> Option<Event>) -> bool {
        let mut overrun = Overrun::default();
        let mut order = lock(&self.order);
        if order.log.is_none() {
            return true;
        }
        let id = alone::next_id(order.last);
        let Some(event) = event(id) else { return false };
        self.take(&mut order, id, Some(namespace), Content::Event(event), &mut overrun);
        drop(order);
        true
    }

    fn take(
        &self,
        order: &mut Order,
        id: EntryId,
        namespace: Option<&Arc<Namespace>>,
        content: Content,
        overrun: &mut Overrun,
    ) {
        let before = order.last.replace(id);
        order.read += 1;
        match (&content, namespace) {
            (Content::Event(event), Some(namespace)) => self.deliver(namespace, event, id, overrun),
            (Content::Loss, _) => self.tell_loss(id),
            _ => {}
        }
        let Some(log) = &mut order.log else { return };
        log.push(Entry { id, content });
        for (key, from, ..) in self.followers.catching_up() {
            if from <= id && before.is_none_or(|before| from > before) {
                self.try_settle(order, key, from, overrun);
            }
        }
    }

    /// Broadcasts never got into the stream: whoever gets what is new has missed them, whatever they were.
    fn tell_loss(&self, id: EntryId) {
        for (_, followed, pending) in self.followers.all() {
            if pending.is_none() {
                followed.follower.gap(Gap::Unreachable, Some(id));
            }
        }
    }

    fn deliver(&self, namespace: &Namespace, event: &Event, id: EntryId, overrun: &mut Overrun) {
        let Some(local) = namespace.local() else { return };
        if self.followers.is_empty() {
            return;
        }
        let number = namespace.number();
        for socket in self.followers.live(number, local.select(&event.opts), id) {
            if !local.send(&event.data, socket) {
                overrun.add(self.followers.cut((number, socket)));
            }
        }
    }
}

impl Namespace {
    /// What is to be kept of a broadcast until it is in the stream.
    pub(crate) fn unsent(self: &Arc<Self>, opts: &Options, data: &Encoded) -> Option<Box<Unsent>> {
        let has_begun = self.inner()?.tail.has_begun();
        let unsent = || Box::new(Unsent { namespace: self.clone(), opts: opts.clone(), data: data.clone() });
        has_begun.then(unsent)
    }

    /// A broadcast did not get into the stream: see [`Tail::undelivered`](crate::tail::Tail::undelivered).
    pub(crate) fn undelivered(self: &Arc<Self>, opts: Options, data: Encoded) -> bool {
        let unsent = Unsent { namespace: self.clone(), opts, data };
        self.inner().is_some_and(|inner| inner.tail.undelivered(&unsent))
    }

    /// What followers get of a broadcast; `None` if its namespace has no sockets, or it is no event.
    pub(crate) fn event(&self, broadcast: &mut Broadcast, id: EntryId) -> Option<Event> {
        let data = self.local()?.encode_with(&mut broadcast.packet, offset(id))?;
        Some(Event { namespace: self.number(), opts: broadcast.opts.clone(), data })
    }
}
