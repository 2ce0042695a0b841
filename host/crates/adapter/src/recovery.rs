//! The task that finds what followers missed, where the log does not tell it at once. It runs while somebody waits, once for all: the
//! stream is read backwards from where the log begins, so that nothing is read twice however many wait and whenever they came.

use std::sync::Arc;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::cluster::{Inner, Shared};
use crate::follow::Gap;
use crate::followers::Key;
use crate::lock::lock;
use crate::log::{Entry, Place};
use crate::tail::{Order, Overrun, Tail};
use crate::transport::{EntryId, Extent, TransportError};

/// How many entries are read at once: few at first, for most were away briefly.
const PAGE_MIN: u64 = 256;
const PAGE_MAX: u64 = 1024;
/// No longer pages are asked for where they come to more, in bytes.
const PAGE_BYTES: usize = 4 << 20;

/// What is to be done next.
enum Plan {
    /// Somebody can be served.
    Settle { key: Key, from: EntryId },
    /// Somebody missed what is before the log.
    Page { base: EntryId },
    /// Somebody saw more than was read here, or says so. Those with lower serial numbers are decided upon.
    Look { before: u64 },
    /// The reader is waited for.
    Wait { until: Instant },
    /// Nobody waits.
    Done,
}

/// Runs until nobody waits.
pub(crate) async fn run(inner: Arc<Inner>) {
    let Some(shared) = inner.shared() else { return };
    let tail = &inner.tail;
    let mut count = PAGE_MIN;
    loop {
        match tail.plan(Instant::now()) {
            Plan::Settle { key, from } => {
                tail.settle(key, from);
                yield_now().await;
            }
            Plan::Page { base } => count = page(&inner, shared, base, count).await,
            Plan::Look { before } => {
                let extent = shared.transport.extent(&inner.settings.stream_name).await;
                tail.look(before, extent, Instant::now() + inner.settings.request_timeout);
            }
            Plan::Wait { until } => tokio::select! {
                () = sleep_until(until) => {}
                () = tail.is_due.notified() => {}
            },
            Plan::Done => return,
        }
    }
}

/// Reads what is right before the log; gives how much to read next.
async fn page(inner: &Arc<Inner>, shared: &Shared, base: EntryId, count: u64) -> u64 {
    let stream = &inner.settings.stream_name;
    metrics::counter!("adapter_recovery_reads_total").increment(1);
    let page = match shared.transport.range(stream, base, count).await {
        Ok(page) => page,
        Err(error) => {
            tracing::debug!(%error, "what clients missed cannot be read");
            inner.tail.refuse_those(Place::Before, Gap::Unreachable);
            return PAGE_MIN;
        }
    };
    let is_start = (page.len() as u64) < count;
    let bytes = page.iter().flat_map(|entry| &entry.fields).map(|(_, value)| value.len()).sum::<usize>();
    let mut reaches_to = page.first().map_or(base, |entry| entry.id);
    if is_start && shared.transport.extent(stream).await.is_ok_and(|extent| extent.added == Some(extent.len)) {
        // Nothing was ever trimmed: whoever saw it empty missed what is there, and there is no entry before.
        reaches_to = EntryId::default();
    }
    let page = page.into_iter().map(|entry| inner.kept(entry)).collect();
    inner.tail.prepend(base, page, reaches_to, is_start);
    if bytes < PAGE_BYTES { (count * 2).min(PAGE_MAX) } else { count }
}

impl Tail {
    fn plan(&self, now: Instant) -> Plan {
        let mut order = lock(&self.order);
        let (mut page, mut look, mut until) = (None, false, None::<Instant>);
        for (key, from, deadline, _) in self.followers.catching_up() {
            match (order.place(from), deadline) {
                (Place::Within | Place::Nowhere, _) => return Plan::Settle { key, from },
                (Place::Before, _) => page = order.log.as_ref().map(|log| (log.base(), log.is_full())),
                (Place::Ahead, None) => look = true,
                (Place::Ahead, Some(deadline)) if deadline <= now => self.refuse(&order, key, Gap::Unreachable),
                (Place::Ahead, Some(deadline)) => until = Some(until.map_or(deadline, |until| until.min(deadline))),
            }
        }
        if let Some(log) = &mut order.log {
            log.set_filling(page.is_some());
        }
        match (page, until) {
            (Some((base, false)), _) => Plan::Page { base },
            (Some((_, true)), _) => {
                self.refuse_all(&order, Place::Before, Gap::TooMany);
                Plan::Wait { until: now }
            }
            _ if look => Plan::Look { before: self.followers.next_serial() },
            (None, Some(until)) => Plan::Wait { until },
            (None, None) => {
                order.is_recovering = false;
                Plan::Done
            }
        }
    }

    fn settle(&self, key: Key, from: EntryId) {
        let mut overrun = Overrun::default();
        let order = lock(&self.order);
        self.try_settle(&order, key, from, &mut overrun);
        drop(order);
    }

    /// A page was read up to `base`. It reaches down to `reaches_to`, and to the beginning of the stream if `is_start`.
    fn prepend(&self, base: EntryId, page: Vec<Entry>, reaches_to: EntryId, is_start: bool) {
        let mut order = lock(&self.order);
        match &mut order.log {
            // It began anew meanwhile, or was trimmed: this page is not what is right before it.
            Some(log) if log.base() == base => log.prepend(page, reaches_to),
            _ => return,
        }
        if is_start {
            self.refuse_all(&order, Place::Before, Gap::Trimmed);
        }
    }

    /// The stream was looked at for those who say that they saw more than was read here.
    fn look(&self, before: u64, extent: Result<Extent, TransportError>, deadline: Instant) {
        let order = lock(&self.order);
        for (key, from, waits_until, serial) in self.followers.catching_up() {
            if order.place(from) != Place::Ahead || waits_until.is_some() || serial >= before {
                continue;
            }
            match &extent {
                Err(_) => self.refuse(&order, key, Gap::Unreachable),
                Ok(extent) if from > extent.last => self.refuse(&order, key, Gap::Unknown),
                Ok(_) => self.followers.set_deadline(key, deadline),
            }
        }
    }

    fn refuse_those(&self, place: Place, gap: Gap) {
        self.refuse_all(&lock(&self.order), place, gap);
    }

    fn refuse_all(&self, order: &Order, place: Place, gap: Gap) {
        for (key, from, ..) in self.followers.catching_up() {
            if order.place(from) == place {
                self.refuse(order, key, gap);
            }
        }
    }
}
