//! The connection that is subscribed.

use std::{sync::Arc, time::Duration};

use fred::interfaces::EventInterface;
use tokio::sync::{Mutex, MutexGuard, Notify, watch};
use tokio::time::sleep;

use super::book::Book;
use super::connector::{Connector, Role};
use super::feed::Feed;
use super::link::{Link, Live, State};
use crate::transport::types::{Received, TransportError};

/// The pause before subscriptions that Redis did not confirm are tried again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Subscriptions, and what they bring.
pub(super) struct Subscriber {
    link: Link,
    channels: Arc<Channels>,
    feed: Arc<Feed>,
}

impl Subscriber {
    pub(super) fn start(connector: Arc<Connector>) -> Subscriber {
        let channels =
            Channels { is_sharded: connector.options.sharded, book: Mutex::default(), repair: Notify::new() };
        let (channels, feed) = (Arc::new(channels), Arc::new(Feed::default()));
        let link = Link::start(Role::Subscriber, connector);
        tokio::spawn(keep(link.watch(), channels.clone(), feed.clone()));
        Subscriber { link, channels, feed }
    }

    /// Channels whose subscription is not confirmed stay wanted, unless Redis refuses them.
    pub(super) async fn subscribe(&self, channels: Vec<String>) -> Result<(), TransportError> {
        let mut book = self.open_book().await?;
        let added: Vec<String> = channels.iter().filter(|channel| !book.wanted.contains(*channel)).cloned().collect();
        book.wanted.extend(added.iter().cloned());
        book.leaving.retain(|channel| !channels.contains(channel));
        let Some(mut live) = book.current.clone() else { return Err(self.why_not()) };
        let result = book.change(&mut live, self.channels.is_sharded, &channels, &[]).await;
        match &result {
            Ok(()) => {}
            Err(TransportError::Refused(_)) => book.wanted.retain(|channel| !added.contains(channel)),
            Err(_) => self.channels.repair.notify_one(),
        }
        result
    }

    pub(super) async fn unsubscribe(&self, channels: Vec<String>) -> Result<(), TransportError> {
        let mut book = self.open_book().await?;
        book.wanted.retain(|channel| !channels.contains(channel));
        // Without a connection there is no subscription, and the next one will not make it.
        let Some(mut live) = book.current.clone() else { return Ok(()) };
        let result = book.change(&mut live, self.channels.is_sharded, &[], &channels).await;
        if result.is_err() {
            book.leaving.extend(channels);
            self.channels.repair.notify_one();
        }
        match result {
            Err(TransportError::Disconnected(_)) => Ok(()),
            result => result,
        }
    }

    pub(super) async fn receive(&self) -> Received {
        self.feed.receive().await
    }

    pub(super) async fn close(&self) {
        self.link.close().await;
    }

    async fn open_book(&self) -> Result<MutexGuard<'_, Book>, TransportError> {
        let book = self.channels.book.lock().await;
        match self.link.live() {
            Err(TransportError::Closed) => Err(TransportError::Closed),
            _ => Ok(book),
        }
    }

    fn why_not(&self) -> TransportError {
        match self.link.live() {
            Ok(_) => TransportError::Disconnected("subscriptions are being renewed".to_owned()),
            Err(error) => error,
        }
    }
}

struct Channels {
    is_sharded: bool,
    /// Held while Redis is told of a change, so that changes come in order.
    book: Mutex<Book>,
    /// Something in the book was not confirmed.
    repair: Notify,
}

/// Runs until the link is closed.
async fn keep(mut link: watch::Receiver<State>, channels: Arc<Channels>, feed: Arc<Feed>) {
    loop {
        let state = link.borrow_and_update().clone();
        let is_over = match state {
            State::Up(client) => tokio::select! {
                () = serve(Live::new(client, link.clone()), &channels, &feed) => false,
                changed = link.changed() => changed.is_err(),
            },
            State::Down(_) => link.changed().await.is_err(),
            State::Closed => true,
        };
        if is_over || matches!(*link.borrow(), State::Closed) {
            return feed.close();
        }
        {
            // First, so that who was told of the end does not ask the connection that ended.
            let mut book = channels.book.lock().await;
            book.current = None;
            book.leaving.clear();
        }
        feed.lost();
    }
}

/// Subscribes a new connection, and repairs its subscriptions from then on.
async fn serve(mut live: Live, channels: &Channels, feed: &Feed) {
    // Before the first subscription: fred drops messages for which there is no receiver.
    let messages = live.client.message_rx();
    renew(&mut live, channels).await;
    feed.restored(messages);
    loop {
        channels.repair.notified().await;
        renew(&mut live, channels).await;
    }
}

async fn renew(live: &mut Live, channels: &Channels) {
    let mut is_told = false;
    loop {
        let result = channels.book.lock().await.renew(live, channels.is_sharded).await;
        let Err(error) = result else { return };
        if !std::mem::replace(&mut is_told, true) {
            tracing::warn!(%error, "channels are not subscribed yet");
        }
        sleep(RETRY_AFTER).await;
    }
}
