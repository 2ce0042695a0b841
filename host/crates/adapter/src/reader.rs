//! The task that reads the stream.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use metrics::{Counter, Gauge};
use tokio::time::{Duration, Instant, sleep};

use crate::cluster::{Inner, LOSS, PEERS_NSP, Shared};
use crate::cursor::{Cursor, Finding};
use crate::event::is_followed;
use crate::follow::Gap;
use crate::log::{self, Content};
use crate::namespace::Namespace;
use crate::transport::{EntryId, StreamEntry, TransportError};
use crate::trouble::Trouble;
use crate::wire::stream::Entry;
use crate::wire::{Body, DecodeError, Message};

/// The longest pause after an error.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// The shortest one.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// Reads until the cluster is left. Errors are waited out, longer each time.
pub(crate) async fn run(inner: Arc<Inner>) {
    let Some(shared) = inner.shared() else { return };
    let mut pause = PAUSE_MIN;
    let mut trouble = Trouble::with("read the stream");
    let mut reader = Reader {
        inner: &inner,
        shared,
        cursor: None,
        looked: None,
        is_again: false,
        received: metrics::counter!("adapter_received_total", "medium" => "stream"),
        lag_ms: metrics::gauge!("redis_stream_lag_ms"),
    };
    while !*shared.stop.borrow() {
        match reader.turn().await {
            Ok(()) => {
                pause = PAUSE_MIN;
                trouble.end();
            }
            Err(TransportError::Closed) => return,
            Err(error) => {
                metrics::counter!("adapter_read_failed_total").increment(1);
                trouble.note(&error);
                reader.looked = None;
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

struct Reader<'a> {
    inner: &'a Arc<Inner>,
    shared: &'a Shared,
    cursor: Option<Cursor>,
    /// When the stream was last compared with the cursor; unknown after whatever may have lost entries.
    looked: Option<Instant>,
    /// What was read last was found behind a gap, and is read once more.
    is_again: bool,
    received: Counter,
    /// How old the oldest of the entries that were read last was; 0 when there were none. Named as in the field.
    lag_ms: Gauge,
}

impl Reader<'_> {
    /// One read, and before it a look at the stream if one is due.
    async fn turn(&mut self) -> Result<(), TransportError> {
        let (stream, settings) = (&self.inner.settings.stream_name, &self.inner.settings);
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= settings.read_block);
        if is_due || self.cursor.is_none() {
            self.look().await?;
        }
        let Some(at) = self.cursor.as_ref().map(Cursor::at) else { return Ok(()) };
        let entries = self.shared.transport.read(stream, at, settings.read_count, settings.read_block).await?;
        // Never is a stream trimmed to less than this: with fewer entries behind the cursor, none can be missing.
        let may_have_gap = entries.len() as u64 >= settings.read_count.min(settings.stream_len_max);
        // Whoever follows must hear of a gap before what is behind it; these entries are read once more then. Not twice in a row,
        // though: where more is added than can be read, some of it is to be taken.
        if may_have_gap && !self.is_again && self.look().await? != Finding::Whole {
            self.is_again = true;
            return Ok(());
        }
        self.is_again = false;
        self.lag_ms.set(entries.first().map_or(0.0, |entry| age_ms(entry.id)));
        if may_have_gap {
            // There is more, and it is being trimmed while it is read.
            self.looked = None;
        }
        for entry in entries {
            if let Some(cursor) = &mut self.cursor {
                cursor.read(entry.id);
            }
            self.inner.take_entry(entry, &self.received);
        }
        Ok(())
    }

    /// Compares the stream with the cursor, and begins at its end where there is none.
    async fn look(&mut self) -> Result<Finding, TransportError> {
        let extent = self.shared.transport.extent(&self.inner.settings.stream_name).await?;
        self.looked = Some(Instant::now());
        let Some(cursor) = &mut self.cursor else {
            self.cursor = Some(Cursor::at_the_end(&extent));
            self.inner.tail.start(extent.last);
            return Ok(Finding::Whole);
        };
        let finding = cursor.compare(&extent);
        self.inner.report(finding, cursor.at());
        Ok(finding)
    }
}

impl Inner {
    fn report(&self, finding: Finding, at: EntryId) {
        let (missed, gap) = match finding {
            Finding::Whole => return,
            Finding::Trimmed { entries } => {
                metrics::counter!("adapter_stream_gaps_total").increment(1);
                metrics::counter!("adapter_stream_missed_total").increment(entries);
                tracing::warn!(entries, "the stream was trimmed before it was read: entries are lost");
                (Some(entries), Gap::Trimmed)
            }
            Finding::Reset => {
                metrics::counter!("adapter_stream_resets_total").increment(1);
                tracing::warn!("the stream is not the one that was read: it was emptied, or an older copy took over");
                (None, Gap::Unknown)
            }
        };
        self.tail.lost(gap, at);
        if let Some(listener) = self.listener() {
            listener.missed(missed);
        }
    }

    fn take_entry(self: &Arc<Self>, entry: StreamEntry, received: &Counter) {
        let id = entry.id;
        let head = Entry::from_fields(entry.fields, &self.settings.limits);
        let is_own = head.as_ref().is_ok_and(|head| head.uid == self.uid);
        let is_passed = self.tail.pass(id);
        if is_own && is_passed {
            return;
        }
        if head.as_ref().is_ok_and(is_loss) {
            return self.tail.push(id, None, Content::Loss);
        }
        if !is_own {
            received.increment(1);
        }
        let found = self.read_entry(head).unwrap_or_else(|error| {
            metrics::counter!("adapter_malformed_total", "medium" => "stream").increment(1);
            tracing::debug!(%error, %id, "an entry of the stream is malformed");
            None
        });
        match found {
            Some((namespace, Message { body: Body::Broadcast(mut broadcast), .. })) if is_followed(&broadcast) => {
                if !is_passed {
                    let content = namespace.event(&mut broadcast, id).map_or(Content::Other, Content::Event);
                    self.tail.push(id, Some(&namespace), content);
                }
                if let Some(local) = namespace.local().filter(|_| !is_own) {
                    local.broadcast(broadcast.packet, &broadcast.opts, false);
                }
            }
            found => {
                if !is_passed {
                    self.tail.push(id, None, Content::Other);
                }
                if let Some((namespace, message)) = found.filter(|_| !is_own) {
                    namespace.take(message);
                }
            }
        }
    }

    /// What is kept of an entry that comes before all that was read.
    pub(crate) fn kept(&self, entry: StreamEntry) -> log::Entry {
        let id = entry.id;
        let head = Entry::from_fields(entry.fields, &self.settings.limits);
        if head.as_ref().is_ok_and(is_loss) {
            return log::Entry { id, content: Content::Loss };
        }
        let event = match self.read_entry(head) {
            Ok(Some((namespace, Message { body: Body::Broadcast(mut broadcast), .. }))) if is_followed(&broadcast) => {
                namespace.event(&mut broadcast, id)
            }
            _ => None,
        };
        log::Entry { id, content: event.map_or(Content::Other, Content::Event) }
    }

    /// The data of a namespace that is not there is not read.
    fn read_entry(&self, head: Result<Entry, DecodeError>) -> Result<Option<(Arc<Namespace>, Message)>, DecodeError> {
        let head = head?;
        let Some(namespace) = self.find(&head.nsp) else { return Ok(None) };
        Ok(Some((namespace, head.decode(&self.settings.limits)?)))
    }
}

/// How old an entry is, by the clock of Redis when it was added and ours now.
fn age_ms(entry: EntryId) -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now_ms = u64::try_from(now).unwrap_or(u64::MAX);
    #[expect(clippy::cast_precision_loss, reason = "a gauge")]
    let age = now_ms.saturating_sub(entry.ms) as f64;
    age
}

/// Whether an entry says that broadcasts before it never got into the stream.
fn is_loss(head: &Entry) -> bool {
    head.number == LOSS && head.nsp == PEERS_NSP
}
