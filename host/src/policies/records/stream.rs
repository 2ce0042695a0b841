//! Writes records to a stream of Redis of their own: entries with the field `record`, whose value is the record's line.
//!
//! A batch is one script and sent once. One at a time, so that what else goes over the connection is not held up; what comes while
//! Redis is away is dropped and counted.

use std::sync::Arc;

use socketioxide_redis_streams::transport::redis::Redis;
use tokio::sync::mpsc;

use super::sink::{BATCH_MAX, Message, Sink, count_dropped, count_written, split};

const NAME: &str = "stream";
const APPEND: &str = include_str!("lua/append.lua");

/// Starts the writer. The stream is `<prefix>#decisions`.
pub(super) fn start(redis: Arc<Redis>, prefix: &str, entries_max: u32) -> Sink {
    let (sink, messages) = Sink::new(NAME);
    tokio::spawn(write_all(redis, format!("{prefix}#decisions"), entries_max, messages));
    sink
}

async fn write_all(redis: Arc<Redis>, stream: String, entries_max: u32, mut messages: mpsc::Receiver<Message>) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut is_told = false;
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
                    if !is_told {
                        tracing::warn!(%error, "decision records are not written to their stream");
                    }
                }
            }
            is_told = appended.is_err();
        }
        if is_end {
            return;
        }
    }
}
