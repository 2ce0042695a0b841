//! Receives messages across connections, with the events of losing and restoring the connection between them.

use fred::types::Message;
use tokio::sync::Mutex;
use tokio::sync::Notify;
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::reply;
use crate::transport::types::Received;

/// The messages and events of the subscribed connection. Messages of a lost connection come before [`Received::Interrupted`], and
/// messages of the next connection after [`Received::Restored`].
#[derive(Default)]
pub(super) struct EventFeed {
    unseen: parking_lot::Mutex<UnseenEvents>,
    changed: Notify,
    /// Locked by the task that receives.
    messages: Mutex<Option<Receiver<Message>>>,
}

/// The events that were not received yet. If the connection was lost and restored several times, only the last state is kept.
#[derive(Default)]
struct UnseenEvents {
    is_restored_seen: bool,
    is_lost: bool,
    restored: Option<Receiver<Message>>,
    is_closed: bool,
}

impl EventFeed {
    /// A connection is up with all its subscriptions.
    pub(super) fn restored(&self, messages: Receiver<Message>) {
        self.unseen.lock().restored = Some(messages);
        self.changed.notify_one();
    }

    /// The connection is lost.
    pub(super) fn lost(&self) {
        let mut unseen = self.unseen.lock();
        unseen.restored = None;
        unseen.is_lost = unseen.is_restored_seen;
        drop(unseen);
        self.changed.notify_one();
    }

    /// No more events will come.
    pub(super) fn close(&self) {
        self.unseen.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits for the next message or event. Loses nothing if the future is dropped.
    pub(super) async fn receive(&self) -> Received {
        let mut messages = self.messages.lock().await;
        loop {
            let Some(receiver) = &mut *messages else {
                match self.next_event(&mut messages) {
                    Some(received) => return received,
                    None => self.changed.notified().await,
                }
                continue;
            };
            tokio::select! {
                biased;
                message = receiver.recv() => match message {
                    Ok(message) => return self::received(message),
                    Err(RecvError::Lagged(messages)) => return Received::Missed(messages),
                    // Fred drops the client some time after its connection. The event will follow.
                    Err(RecvError::Closed) => self.changed.notified().await,
                },
                () = self.changed.notified() => {}
            }
            if let Some(received) = self.next_event(&mut messages) {
                return received;
            }
        }
    }

    fn next_event(&self, messages: &mut Option<Receiver<Message>>) -> Option<Received> {
        let mut unseen = self.unseen.lock();
        if unseen.is_closed {
            *messages = None;
            return Some(Received::Closed);
        }
        if std::mem::take(&mut unseen.is_lost) {
            unseen.is_restored_seen = false;
            *messages = None;
            return Some(Received::Interrupted);
        }
        *messages = Some(unseen.restored.take()?);
        unseen.is_restored_seen = true;
        Some(Received::Restored)
    }
}

fn received(message: Message) -> Received {
    let channel = message.channel.to_string();
    match reply::bytes(message.value) {
        Ok(payload) => Received::Message { channel, payload },
        // Redis sends only strings. Anything else counts as lost.
        Err(_) => Received::Missed(1),
    }
}
