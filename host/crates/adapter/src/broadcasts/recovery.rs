//! Recovers what followers missed, where the log alone is not enough.
//!
//! The task runs while a follower waits, once for all of them. It reads the stream backwards from the start of the log, so it reads
//! nothing twice, however many followers wait and whenever they came.

use std::sync::Arc;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::followed_stream::{FollowedStream, Overrun, StreamOrder};
use super::follower::Gap;
use super::followers::FollowerKey;
use super::log::{LogEntry, Position};
use super::source::StreamSource;
use crate::transport::{EntryId, Extent, TransportError};

/// How many entries one read asks for. The first reads are small, because most clients were away briefly.
const PAGE_MIN: u64 = 256;
const PAGE_MAX: u64 = 1024;
/// Pages do not grow beyond so many bytes.
const PAGE_BYTES: usize = 4 << 20;

/// The next step of the recovery.
enum RecoveryStep {
    /// A follower can be served from the log.
    Settle { key: FollowerKey, from: EntryId },
    /// A follower missed entries before the log: read the page before `base`.
    Page { base: EntryId },
    /// A follower names an entry that this replica has not read: check that the stream has it. Followers with lower serial numbers
    /// than `before` are decided by the check.
    Check { before: u64 },
    /// Wait for the reader.
    Wait { until: Instant },
    /// No follower waits.
    Done,
}

/// Runs until no follower waits.
pub(crate) async fn recover(source: Arc<StreamSource>) {
    let followed = &source.followed;
    let mut count = PAGE_MIN;
    loop {
        match followed.next_step(Instant::now()) {
            RecoveryStep::Settle { key, from } => {
                followed.settle(key, from);
                yield_now().await;
            }
            RecoveryStep::Page { base } => count = read_page(&source, base, count).await,
            RecoveryStep::Check { before } => {
                let extent = source.extent().await;
                followed.handle_check(before, extent, Instant::now() + source.settings.request_timeout);
            }
            RecoveryStep::Wait { until } => tokio::select! {
                () = sleep_until(until) => {}
                () = followed.recovery_due.notified() => {}
            },
            RecoveryStep::Done => return,
        }
    }
}

/// Reads the entries right before the log. Returns how many to read next.
async fn read_page(source: &StreamSource, base: EntryId, count: u64) -> u64 {
    metrics::counter!("adapter_recovery_reads_total").increment(1);
    let page = match source.transport.range(&source.settings.stream_name, base, count).await {
        Ok(page) => page,
        Err(error) => {
            tracing::debug!(%error, "cannot read what clients missed");
            source.followed.handle_unreadable_page();
            return PAGE_MIN;
        }
    };
    let is_start = (page.len() as u64) < count;
    let bytes = page.iter().flat_map(|entry| &entry.fields).map(|(_, value)| value.len()).sum::<usize>();
    let mut reaches_to = page.first().map_or(base, |entry| entry.id);
    if is_start && source.extent().await.is_ok_and(|extent| extent.added == Some(extent.len)) {
        // The stream was never trimmed: there is no entry before the page, so the log reaches back to the start.
        reaches_to = EntryId::default();
    }
    let page = page.into_iter().map(|entry| source.log_entry(entry)).collect();
    source.followed.handle_page(base, page, reaches_to, is_start);
    if bytes < PAGE_BYTES { (count * 2).min(PAGE_MAX) } else { count }
}

impl FollowedStream {
    fn next_step(&self, now: Instant) -> RecoveryStep {
        let mut order = self.order.lock();
        let (mut page, mut is_check_due, mut until) = (None, false, None::<Instant>);
        for (key, from, deadline, _) in self.followers.catching_up() {
            match (order.position(from), deadline) {
                (Position::Within | Position::Unknown, _) => return RecoveryStep::Settle { key, from },
                (Position::Before, _) => page = order.log.as_ref().map(|log| (log.base(), log.is_full())),
                (Position::Ahead, None) => is_check_due = true,
                (Position::Ahead, Some(deadline)) if deadline <= now => self.refuse(&order, key, Gap::Unreachable),
                (Position::Ahead, Some(deadline)) => until = Some(until.map_or(deadline, |until| until.min(deadline))),
            }
        }
        if let Some(log) = &mut order.log {
            log.set_filling(page.is_some());
        }
        match (page, until) {
            (Some((base, false)), _) => RecoveryStep::Page { base },
            (Some((_, true)), _) => {
                self.refuse_all_before(&order, Gap::TooMany);
                RecoveryStep::Wait { until: now }
            }
            _ if is_check_due => RecoveryStep::Check { before: self.followers.next_serial() },
            (None, Some(until)) => RecoveryStep::Wait { until },
            (None, None) => {
                order.is_recovering = false;
                RecoveryStep::Done
            }
        }
    }

    fn settle(&self, key: FollowerKey, from: EntryId) {
        let mut overrun = Overrun::default();
        let order = self.order.lock();
        self.try_settle(&order, key, from, &mut overrun);
    }

    /// A page was read up to `base`. It reaches back to `reaches_to`, and to the beginning of the stream if `is_start`.
    fn handle_page(&self, base: EntryId, page: Vec<LogEntry>, reaches_to: EntryId, is_start: bool) {
        let mut order = self.order.lock();
        match &mut order.log {
            // If the base has moved, the log was restarted or trimmed meanwhile, and this page is not right before it.
            Some(log) if log.base() == base => log.prepend(page, reaches_to),
            _ => return,
        }
        if is_start {
            self.refuse_all_before(&order, Gap::Trimmed);
        }
    }

    fn handle_unreadable_page(&self) {
        self.refuse_all_before(&self.order.lock(), Gap::Unreachable);
    }

    /// The extent of the stream was read for followers that name an entry which this replica has not read.
    fn handle_check(&self, before: u64, extent: Result<Extent, TransportError>, deadline: Instant) {
        let order = self.order.lock();
        for (key, from, waits_until, serial) in self.followers.catching_up() {
            if order.position(from) != Position::Ahead || waits_until.is_some() || serial >= before {
                continue;
            }
            match &extent {
                Err(_) => self.refuse(&order, key, Gap::Unreachable),
                Ok(extent) if from > extent.last => self.refuse(&order, key, Gap::Unknown),
                Ok(_) => self.followers.set_deadline(key, deadline),
            }
        }
    }

    /// Refuses every follower that missed entries before the log.
    fn refuse_all_before(&self, order: &StreamOrder, gap: Gap) {
        for (key, from, ..) in self.followers.catching_up() {
            if order.position(from) == Position::Before {
                self.refuse(order, key, gap);
            }
        }
    }
}
