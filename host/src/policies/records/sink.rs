//! Passes records to a writer through a bounded queue, without waiting.

use std::{sync::Arc, time::Duration};

use pointwork_policy::record::DecisionRecord;
use tokio::{sync::mpsc, time::timeout};

/// The most records that wait for a writer.
const QUEUE_MAX: usize = 4_096;
/// How long to wait for a writer to end.
const CLOSING_MAX: Duration = Duration::from_secs(2);
/// How many records a writer takes at once.
pub(super) const BATCH_MAX: usize = 128;

/// A message to a writer.
pub(super) enum SinkMessage {
    Record(Arc<DecisionRecord>),
    /// No further record follows.
    End,
}

/// The sending side of a writer's queue.
pub(super) struct Sink {
    name: &'static str,
    queue: mpsc::Sender<SinkMessage>,
}

impl Sink {
    /// Makes a queue. `name` is the writer's name in metrics.
    pub(super) fn new(name: &'static str) -> (Self, mpsc::Receiver<SinkMessage>) {
        let (queue, messages) = mpsc::channel(QUEUE_MAX);
        (Self { name, queue }, messages)
    }

    /// Sends a record, or drops and counts it when the queue is full.
    pub(super) fn offer(&self, record: &Arc<DecisionRecord>) {
        if self.queue.try_send(SinkMessage::Record(record.clone())).is_err() {
            count_dropped(self.name, 1);
        }
    }

    /// Waits until the writer has written everything and has ended.
    pub(super) async fn close(&self) {
        let closed = async {
            let _ = self.queue.send(SinkMessage::End).await;
            self.queue.closed().await;
        };
        if timeout(CLOSING_MAX, closed).await.is_err() {
            tracing::warn!(sink = self.name, "decision records were still waiting and are lost");
        }
    }
}

/// Takes the records of a batch, and returns whether they are the last ones.
pub(super) fn split(batch: &mut Vec<SinkMessage>) -> (Vec<Arc<DecisionRecord>>, bool) {
    let mut is_end = false;
    let records = batch.drain(..).filter_map(|message| match message {
        SinkMessage::Record(record) => Some(record),
        SinkMessage::End => {
            is_end = true;
            None
        }
    });
    (records.collect(), is_end)
}

/// Counts records that were not written.
pub(super) fn count_dropped(sink: &'static str, count: usize) {
    metrics::counter!("pointwork_records_dropped_total", "sink" => sink).increment(count as u64);
}

/// Counts records that were written.
pub(super) fn count_written(sink: &'static str, count: usize) {
    metrics::counter!("pointwork_records_written_total", "sink" => sink).increment(count as u64);
}
