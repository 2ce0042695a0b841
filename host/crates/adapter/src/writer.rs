//! The task that sends what is in the outbox.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cluster::{Inner, Shared};
use crate::outbox::Letter;
use crate::parcel;
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
        let parcels = parcel::pack(letters, |server| shared.opens_parcels(server));
        let mut batch = Vec::with_capacity(parcels.len());
        let (sealed, broken): (Vec<_>, Vec<_>) = parcels.into_iter().partition(|parcel| {
            let outgoing = parcel::seal(&inner, parcel);
            let is_sealed = outgoing.is_some();
            batch.extend(outgoing);
            is_sealed
        });
        let results = shared.transport.send(batch).await;
        let too_long = broken.into_iter().map(|parcel| (parcel, Err(TransportError::Refused("too long".to_owned()))));
        for (parcel, result) in sealed.into_iter().zip(results).chain(too_long) {
            for letter in &parcel.letters {
                let kind = kind(&letter.outgoing);
                let (trouble, published) =
                    if kind == CHANNEL { (&mut channel, &to_channel) } else { (&mut stream, &to_stream) };
                match &result {
                    Ok(()) => {
                        trouble.end();
                        published.increment(1);
                    }
                    Err(error) => {
                        trouble.note(error);
                        failed(&inner, shared, letter, error);
                    }
                }
            }
        }
    }
}

/// Waits until the writer has sent all.
pub(crate) async fn finished(shared: &Shared) {
    shared.stop.closed().await;
}

fn failed(inner: &Inner, shared: &Shared, letter: &Letter, error: &TransportError) {
    let kind = kind(&letter.outgoing);
    metrics::counter!("adapter_publish_failed_total", "medium" => kind).increment(1);
    tracing::debug!(%error, kind, "a message did not get to Redis");
    if let Some(unsent) = &letter.unsent {
        inner.tail.undelivered(unsent);
    }
    match &letter.request {
        Some(request) => shared.requests.fail(request),
        // An answer, a note, or a question about either.
        None if kind == CHANNEL => shared.note_lost(),
        None => shared.is_loss_due.store(true, Ordering::Relaxed),
    }
}

fn kind(outgoing: &Outgoing) -> &'static str {
    match outgoing {
        Outgoing::Append { .. } => STREAM,
        Outgoing::Publish { .. } => CHANNEL,
    }
}
