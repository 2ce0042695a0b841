//! The task that sends what is in the outbox.

use std::sync::Arc;

use crate::cluster::{Inner, Shared};
use crate::transport::{Outgoing, TransportError};
use crate::trouble::Trouble;

/// The medium of what is published.
const CHANNEL: &str = "channel";

/// Runs until the outbox is closed and empty.
pub(crate) async fn run(inner: Arc<Inner>) {
    let Some(shared) = inner.shared() else { return };
    // Held until all is sent: see `finished`.
    let _running = shared.stop.subscribe();
    let mut stream = Trouble::with("append to the stream");
    let mut channel = Trouble::with("publish");
    loop {
        let letters = shared.outbox.take().await;
        if letters.is_empty() {
            return;
        }
        let (batch, requests): (Vec<_>, Vec<_>) =
            letters.into_iter().map(|letter| (letter.outgoing, letter.request)).unzip();
        let kinds: Vec<&str> = batch.iter().map(kind).collect();
        let results = shared.transport.send(batch).await;
        for ((kind, request), result) in kinds.into_iter().zip(requests).zip(results) {
            let trouble = if kind == CHANNEL { &mut channel } else { &mut stream };
            match result {
                Ok(()) => {
                    trouble.end();
                    metrics::counter!("adapter_published_total", "medium" => kind).increment(1);
                }
                Err(error) => {
                    trouble.note(&error);
                    failed(shared, kind, request.as_deref(), &error);
                }
            }
        }
    }
}

/// Waits until the writer has sent all.
pub(crate) async fn finished(shared: &Shared) {
    shared.stop.closed().await;
}

fn failed(shared: &Shared, kind: &'static str, request: Option<&str>, error: &TransportError) {
    metrics::counter!("adapter_publish_failed_total", "medium" => kind).increment(1);
    tracing::debug!(%error, kind, "a message did not get to Redis");
    match request {
        Some(request) => shared.requests.fail(request),
        // An answer, a note, or a question about either.
        None if kind == CHANNEL => shared.note_lost(),
        None => {}
    }
}

fn kind(outgoing: &Outgoing) -> &'static str {
    match outgoing {
        Outgoing::Append { .. } => "stream",
        Outgoing::Publish { .. } => CHANNEL,
    }
}
