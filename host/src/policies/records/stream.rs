//! Writes records to a Redis stream. Each entry has the field `record`, whose value is the record's line.
//!
//! A batch is one script, which is not retried. Only one batch is under way at a time, so that the connection stays free for other
//! messages. Records are dropped and counted while Redis is away.

use std::sync::Arc;

use socketioxide_redis_streams::transport::redis::Redis;
use tokio::sync::mpsc;

use super::sink::{BATCH_MAX, Sink, SinkMessage, count_dropped, count_written, split};

const NAME: &str = "stream";
const APPEND: &str = include_str!("lua/append.lua");

/// Starts the writer. The stream is `<prefix>#decisions`.
pub(super) fn start(redis: Arc<Redis>, prefix: &str, entries_max: u32) -> Sink {
    let (sink, messages) = Sink::new(NAME);
    tokio::spawn(write_all(redis, format!("{prefix}#decisions"), entries_max, messages));
    sink
}

async fn write_all(redis: Arc<Redis>, stream: String, entries_max: u32, mut messages: mpsc::Receiver<SinkMessage>) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut was_logged = false;
    while messages.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let (records, is_end) = split(&mut batch);
        if !records.is_empty() {
            let lines = records.iter().map(|record| record.to_line());
            let args = std::iter::once(entries_max.to_string()).chain(lines).map(Into::into).collect();
            let appended = redis.evaluate(APPEND, vec![stream.clone()], args).await;
            match &appended {
                Ok(_) => count_written(NAME, records.len()),
                Err(error) => {
                    count_dropped(NAME, records.len());
                    if !was_logged {
                        tracing::warn!(%error, "decision records are not written to their stream");
                    }
                }
            }
            was_logged = appended.is_err();
        }
        if is_end {
            return;
        }
    }
}
