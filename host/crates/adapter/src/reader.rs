//! The task that reads the stream.

use std::sync::Arc;

use tokio::time::{Duration, Instant, sleep};

use crate::cluster::{Inner, Shared};
use crate::cursor::{Cursor, Finding};
use crate::transport::{StreamEntry, TransportError};
use crate::trouble::Trouble;
use crate::wire::stream::Entry;

/// The longest pause after an error.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// The shortest one.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// Reads until the cluster is left. Errors are waited out, longer each time.
pub(crate) async fn run(inner: Arc<Inner>) {
    let Some(shared) = inner.shared() else { return };
    let mut pause = PAUSE_MIN;
    let mut trouble = Trouble::with("read the stream");
    let mut reader = Reader { inner: &inner, shared, cursor: None, looked: None };
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
}

impl Reader<'_> {
    /// One read, and before it a look at the stream if one is due.
    async fn turn(&mut self) -> Result<(), TransportError> {
        let (stream, settings) = (&self.inner.settings.stream_name, &self.inner.settings);
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= settings.read_block);
        if is_due || self.cursor.is_none() {
            let extent = self.shared.transport.extent(stream).await?;
            self.looked = Some(Instant::now());
            match &mut self.cursor {
                Some(cursor) => self.inner.report(cursor.compare(&extent)),
                None => self.cursor = Some(Cursor::at_the_end(&extent)),
            }
        }
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        let read = self.shared.transport.read(stream, cursor.at(), settings.read_count, settings.read_block);
        let entries = read.await?;
        if entries.len() as u64 >= settings.read_count {
            // There is more, and it is being trimmed while it is read.
            self.looked = None;
        }
        for entry in entries {
            cursor.read(entry.id);
            self.inner.take_entry(entry);
        }
        Ok(())
    }
}

impl Inner {
    fn report(&self, finding: Finding) {
        let missed = match finding {
            Finding::Whole => return,
            Finding::Trimmed { entries } => {
                metrics::counter!("adapter_stream_gaps_total").increment(1);
                metrics::counter!("adapter_stream_missed_total").increment(entries);
                tracing::warn!(entries, "the stream was trimmed before it was read: entries are lost");
                Some(entries)
            }
            Finding::Reset => {
                metrics::counter!("adapter_stream_resets_total").increment(1);
                tracing::warn!("the stream is not the one that was read: it was emptied, or an older copy took over");
                None
            }
        };
        if let Some(listener) = self.listener() {
            listener.missed(missed);
        }
    }

    fn take_entry(self: &Arc<Self>, entry: StreamEntry) {
        let limits = &self.settings.limits;
        let id = entry.id;
        let head = match Entry::from_fields(entry.fields, limits) {
            Ok(head) if head.uid == self.uid => return,
            head => head,
        };
        metrics::counter!("adapter_received_total", "medium" => "stream").increment(1);
        // The data of a namespace that is not there is not read.
        let found = head.map(|head| (self.find(&head.nsp), head));
        let message = match found {
            Ok((Some(namespace), head)) => head.decode(limits).map(|message| (namespace, message)),
            Ok((None, _)) => return,
            Err(error) => Err(error),
        };
        match message {
            Ok((namespace, message)) => namespace.take(message),
            Err(error) => {
                metrics::counter!("adapter_malformed_total", "medium" => "stream").increment(1);
                tracing::debug!(%error, %id, "an entry of the stream is malformed");
            }
        }
    }
}
