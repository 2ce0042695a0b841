//! What the subscriptions bring, across connections.

use fred::types::Message;
use tokio::sync::Mutex;
use tokio::sync::Notify;
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::reply;
use crate::transport::types::Received;

/// The messages of the connection that is there, and the news of its coming and going between them. Messages of a connection
/// that is lost come before [`Received::Interrupted`], those of the next one behind [`Received::Restored`].
#[derive(Default)]
pub(super) struct Feed {
    news: parking_lot::Mutex<News>,
    is_news: Notify,
    /// Held by the one who receives.
    messages: Mutex<Option<Receiver<Message>>>,
}

/// What was not told yet. However often a connection comes and goes, only its end is kept.
#[derive(Default)]
struct News {
    is_up_told: bool,
    is_lost: bool,
    restored: Option<Receiver<Message>>,
    is_closed: bool,
}

impl Feed {
    /// A connection is there with all its subscriptions.
    pub(super) fn restored(&self, messages: Receiver<Message>) {
        self.news.lock().restored = Some(messages);
        self.is_news.notify_one();
    }

    /// The connection is gone.
    pub(super) fn lost(&self) {
        let mut news = self.news.lock();
        news.restored = None;
        news.is_lost = news.is_up_told;
        drop(news);
        self.is_news.notify_one();
    }

    /// Nothing comes any more.
    pub(super) fn close(&self) {
        self.news.lock().is_closed = true;
        self.is_news.notify_one();
    }

    /// Loses nothing when it is dropped before it is done.
    pub(super) async fn receive(&self) -> Received {
        let mut messages = self.messages.lock().await;
        loop {
            let Some(receiver) = &mut *messages else {
                match self.next_news(&mut messages) {
                    Some(received) => return received,
                    None => self.is_news.notified().await,
                }
                continue;
            };
            tokio::select! {
                biased;
                message = receiver.recv() => match message {
                    Ok(message) => return self::received(message),
                    Err(RecvError::Lagged(messages)) => return Received::Missed(messages),
                    // Fred lets go of a client some time after its connection; the news is on its way.
                    Err(RecvError::Closed) => self.is_news.notified().await,
                },
                () = self.is_news.notified() => {}
            }
            if let Some(received) = self.next_news(&mut messages) {
                return received;
            }
        }
    }

    fn next_news(&self, messages: &mut Option<Receiver<Message>>) -> Option<Received> {
        let mut news = self.news.lock();
        if news.is_closed {
            *messages = None;
            return Some(Received::Closed);
        }
        if std::mem::take(&mut news.is_lost) {
            news.is_up_told = false;
            *messages = None;
            return Some(Received::Interrupted);
        }
        *messages = Some(news.restored.take()?);
        news.is_up_told = true;
        Some(Received::Restored)
    }
}

fn received(message: Message) -> Received {
    let channel = message.channel.to_string();
    match reply::bytes(message.value) {
        Ok(payload) => Received::Message { channel, payload },
        // Redis sends strings alone: one that is none is as good as lost.
        Err(_) => Received::Missed(1),
    }
}
