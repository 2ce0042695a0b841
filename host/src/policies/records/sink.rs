//! The way to a writer: a bounded queue that nobody waits for.

use std::{sync::Arc, time::Duration};

use pointwork_policy::record::DecisionRecord;
use tokio::{sync::mpsc, time::timeout};

/// Records that wait for a writer.
const QUEUE_MAX: usize = 4_096;
/// How long the end of a writer is waited for.
const CLOSING_MAX: Duration = Duration::from_secs(2);
/// How many records a writer takes at once.
pub(super) const BATCH_MAX: usize = 128;

/// What a writer is sent.
pub(super) enum Message {
    Record(Arc<DecisionRecord>),
    /// No more will come.
    End,
}

/// A writer, from outside.
pub(super) struct Sink {
    name: &'static str,
    queue: mpsc::Sender<Message>,
}

impl Sink {
    /// A queue; `name` is that of the writer at its other end, in metrics.
    pub(super) fn new(name: &'static str) -> (Self, mpsc::Receiver<Message>) {
        let (queue, messages) = mpsc::channel(QUEUE_MAX);
        (Self { name, queue }, messages)
    }

    /// Hands a record over, or drops and counts it.
    pub(super) fn offer(&self, record: &Arc<DecisionRecord>) {
        if self.queue.try_send(Message::Record(record.clone())).is_err() {
            count_dropped(self.name, 1);
        }
    }

    /// Waits until the writer has written all and ended.
    pub(super) async fn close(&self) {
        let closed = async {
            let _ = self.queue.send(Message::End).await;
            self.queue.closed().await;
        };
        if timeout(CLOSING_MAX, closed).await.is_err() {
            tracing::warn!(sink = self.name, "decision records were still waiting and are lost");
        }
    }
}

/// The records of a batch, and whether they are the last.
pub(super) fn split(batch: &mut Vec<Message>) -> (Vec<Arc<DecisionRecord>>, bool) {
    let mut is_end = false;
    let records = batch.drain(..).filter_map(|message| match message {
        Message::Record(record) => Some(record),
        Message::End => {
            is_end = true;
            None
        }
    });
    (records.collect(), is_end)
}

/// Records that were not written.
pub(super) fn count_dropped(sink: &'static str, count: usize) {
    metrics::counter!("pointwork_records_dropped_total", "sink" => sink).increment(count as u64);
}

/// Records that were.
pub(super) fn count_written(sink: &'static str, count: usize) {
    metrics::counter!("pointwork_records_written_total", "sink" => sink).increment(count as u64);
}
