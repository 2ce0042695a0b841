//! The task that sends what is in the outbox.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cluster::{Inner, Shared};
use crate::replay::Unsent;
use crate::transport::{Outgoing, TransportError};
use crate::trouble::Trouble;

/// The media of what is published.
const STREAM: &str = "stream";
const CHANNEL: &str = "channel";

/// Runs until the outbox is closed and empty.
pub(crate) async fn run(inner: Arc<Inner>) {
    let Some(shared) = inner.shared() else { return };
    // Held until all is sent: see `finished`.
    let _running = shared.stop.subscribe();
    let published = |medium: &'static str| metrics::counter!("adapter_published_total", "medium" => medium);
    let (to_stream, to_channel) = (published(STREAM), published(CHANNEL));
    let mut stream = Trouble::with("append to the stream");
    let mut channel = Trouble::with("publish");
    loop {
        let letters = shared.outbox.take().await;
        if letters.is_empty() {
            return;
        }
        let mut batch = Vec::with_capacity(letters.len());
        let sent: Vec<_> = letters
            .into_iter()
            .map(|letter| {
                let sent = Sent { kind: kind(&letter.outgoing), request: letter.request, unsent: letter.unsent };
                batch.push(letter.outgoing);
                sent
            })
            .collect();
        let results = shared.transport.send(batch).await;
        for (sent, result) in sent.into_iter().zip(results) {
            let (trouble, published) =
                if sent.kind == CHANNEL { (&mut channel, &to_channel) } else { (&mut stream, &to_stream) };
            match result {
                Ok(()) => {
                    trouble.end();
                    published.increment(1);
                }
                Err(error) => {
                    trouble.note(&error);
                    failed(&inner, shared, &sent, &error);
                }
            }
        }
    }
}

/// What is left of a letter when it was sent.
struct Sent {
    kind: &'static str,
    request: Option<String>,
    unsent: Option<Box<Unsent>>,
}

/// Waits until the writer has sent all.
pub(crate) async fn finished(shared: &Shared) {
    shared.stop.closed().await;
}

fn failed(inner: &Inner, shared: &Shared, sent: &Sent, error: &TransportError) {
    metrics::counter!("adapter_publish_failed_total", "medium" => sent.kind).increment(1);
    tracing::debug!(%error, kind = sent.kind, "a message did not get to Redis");
    if let Some(unsent) = &sent.unsent {
        inner.tail.undelivered(unsent);
    }
    match &sent.request {
        Some(request) => shared.requests.fail(request),
        // An answer, a note, or a question about either.
        None if sent.kind == CHANNEL => shared.note_lost(),
        None => shared.is_loss_due.store(true, Ordering::Relaxed),
    }
}

fn kind(outgoing: &Outgoing) -> &'static str {
    match outgoing {
        Outgoing::Append { .. } => STREAM,
        Outgoing::Publish { .. } => CHANNEL,
    }
}
