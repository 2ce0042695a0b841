//! Reads the stream, passes its messages on, and finds entries that were lost before they were read.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use metrics::{Counter, Gauge};
use tokio::time::{Duration, Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::cursor::{Finding, StreamCursor};
use super::event::{encode_event, is_followed};
use super::follower::Gap;
use super::log::EntryContent;
use super::source::{StreamSource, is_loss};
use crate::sockets::LocalNamespace;
use crate::transport::{EntryId, FailureLog, StreamEntry, TransportError};
use crate::wire::stream::Entry;
use crate::wire::{Body, Message};

/// The pauses after an error. They grow with each error.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Carries out a message of another server that is no event for followers.
type OnMessage = Box<dyn Fn(&Arc<LocalNamespace>, Message) + Send + Sync>;

/// The task that reads the stream.
pub(crate) struct StreamReader {
    source: Arc<StreamSource>,
    on_message: OnMessage,
    /// Is called with the number of lost entries; `None` if it is unknown.
    on_missed: Box<dyn Fn(Option<u64>) + Send + Sync>,
    cursor: Option<StreamCursor>,
    /// When the stream was last compared with the cursor. `None` if entries may have been lost since.
    compared: Option<Instant>,
    /// The last entries came after a gap, and are read again.
    is_rereading: bool,
    received: Counter,
    /// The age of the oldest of the entries that were read last; 0 if there were none.
    lag_ms: Gauge,
}

impl StreamReader {
    pub(crate) fn new(
        source: Arc<StreamSource>,
        on_message: impl Fn(&Arc<LocalNamespace>, Message) + Send + Sync + 'static,
        on_missed: impl Fn(Option<u64>) + Send + Sync + 'static,
    ) -> Self {
        StreamReader {
            source,
            on_message: Box::new(on_message),
            on_missed: Box::new(on_missed),
            cursor: None,
            compared: None,
            is_rereading: false,
            received: metrics::counter!("adapter_received_total", "medium" => "stream"),
            lag_ms: metrics::gauge!("redis_stream_lag_ms"),
        }
    }

    /// Reads until `stop`. Waits after each error.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut pause = PAUSE_MIN;
        let mut failures = FailureLog::of("read the stream");
        while !stop.is_cancelled() {
            match self.read().await {
                Ok(()) => {
                    pause = PAUSE_MIN;
                    failures.end();
                }
                Err(TransportError::Closed) => return,
                Err(error) => {
                    metrics::counter!("adapter_read_failed_total").increment(1);
                    failures.note(&error);
                    self.compared = None;
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Reads once. Compares the stream with the cursor before, if that is due.
    async fn read(&mut self) -> Result<(), TransportError> {
        let source = self.source.clone();
        let settings = &source.settings;
        let is_due = self.compared.is_none_or(|compared| compared.elapsed() >= settings.read_block);
        if is_due || self.cursor.is_none() {
            self.compare().await?;
        }
        let Some(at) = self.cursor.as_ref().map(StreamCursor::at) else { return Ok(()) };
        let (count, block) = (settings.read_count, settings.read_block);
        let entries = source.transport.read(&settings.stream_name, at, count, block).await?;
        // A stream is never trimmed to fewer entries than this. With fewer entries after the cursor, none can be missing.
        let may_have_gap = entries.len() as u64 >= settings.read_count.min(settings.stream_len_max);
        // Followers must hear of a gap before they get the entries after it, so those entries are read again. But not twice in a row:
        // some entries must be taken even if more are added than can be read.
        if may_have_gap && !self.is_rereading && self.compare().await? != Finding::Whole {
            self.is_rereading = true;
            return Ok(());
        }
        self.is_rereading = false;
        self.lag_ms.set(entries.first().map_or(0.0, |entry| age_ms(entry.id)));
        if may_have_gap {
            // More entries wait, and the stream is being trimmed meanwhile.
            self.compared = None;
        }
        for entry in entries {
            if let Some(cursor) = &mut self.cursor {
                cursor.handle_entry(entry.id);
            }
            self.handle_entry(entry);
        }
        Ok(())
    }

    /// Compares the stream with the cursor. Without a cursor, begins at the end of the stream.
    async fn compare(&mut self) -> Result<Finding, TransportError> {
        let extent = self.source.extent().await?;
        self.compared = Some(Instant::now());
        let Some(cursor) = &mut self.cursor else {
            self.cursor = Some(StreamCursor::at_the_end(&extent));
            self.source.followed.handle_start(extent.last);
            return Ok(Finding::Whole);
        };
        let finding = cursor.compare(&extent);
        let at = cursor.at();
        self.report(finding, at);
        Ok(finding)
    }

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
        self.source.followed.handle_lost_entries(gap, at);
        (self.on_missed)(missed);
    }

    fn handle_entry(&self, entry: StreamEntry) {
        let (id, followed) = (entry.id, &self.source.followed);
        let head = Entry::from_fields(entry.fields, &self.source.settings.limits);
        let is_own = head.as_ref().is_ok_and(|head| head.uid == self.source.uid);
        let is_skipped = followed.try_skip(id);
        if is_own && is_skipped {
            return;
        }
        if head.as_ref().is_ok_and(is_loss) {
            return followed.handle_entry(id, None, EntryContent::Loss);
        }
        if !is_own {
            self.received.increment(1);
        }
        let decoded = self.source.decode(head).unwrap_or_else(|error| {
            metrics::counter!("adapter_malformed_total", "medium" => "stream").increment(1);
            tracing::debug!(%error, %id, "an entry of the stream is malformed");
            None
        });
        match decoded {
            Some((namespace, Message { body: Body::Broadcast(mut broadcast), .. })) if is_followed(&broadcast) => {
                if !is_skipped {
                    let event = encode_event(&namespace, &mut broadcast, id);
                    let content = event.map_or(EntryContent::Other, EntryContent::Event);
                    followed.handle_entry(id, Some(&namespace), content);
                }
                if let Some(sockets) = namespace.sockets().filter(|_| !is_own) {
                    sockets.broadcast(broadcast.packet, &broadcast.opts, false);
                }
            }
            decoded => {
                if !is_skipped {
                    followed.handle_entry(id, None, EntryContent::Other);
                }
                if let Some((namespace, message)) = decoded.filter(|_| !is_own) {
                    (self.on_message)(&namespace, message);
                }
            }
        }
    }
}

/// The age of an entry, from the clock of Redis when it was added to our clock now.
fn age_ms(entry: EntryId) -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now_ms = u64::try_from(now).unwrap_or(u64::MAX);
    #[expect(clippy::cast_precision_loss, reason = "a gauge")]
    let age = now_ms.saturating_sub(entry.ms) as f64;
    age
}
