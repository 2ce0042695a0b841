//! The connection that is subscribed, and its subscriptions.

use std::{sync::Arc, time::Duration};

use fred::interfaces::EventInterface;
use tokio::sync::{Mutex, MutexGuard, Notify, watch};
use tokio::time::sleep;

use super::channel_table::ChannelTable;
use super::connection::{Connection, ConnectionState, LiveConnection};
use super::connector::{Connector, Role};
use super::event_feed::EventFeed;
use crate::transport::types::{Received, TransportError};

/// The pause before subscriptions that Redis did not confirm are tried again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The subscribed connection.
pub(super) struct Subscriber {
    connection: Connection,
    subscriptions: Arc<Subscriptions>,
    feed: Arc<EventFeed>,
}

impl Subscriber {
    pub(super) fn start(connector: Arc<Connector>) -> Subscriber {
        let is_sharded = connector.options.sharded;
        let subscriptions = Subscriptions { is_sharded, table: Mutex::default(), repair: Notify::new() };
        let (subscriptions, feed) = (Arc::new(subscriptions), Arc::new(EventFeed::default()));
        let connection = Connection::start(Role::Subscriber, connector);
        tokio::spawn(keep(connection.watch(), subscriptions.clone(), feed.clone()));
        Subscriber { connection, subscriptions, feed }
    }

    /// A channel whose subscription is not confirmed stays wanted, unless Redis refuses it.
    pub(super) async fn subscribe(&self, channels: Vec<String>) -> Result<(), TransportError> {
        let mut table = self.lock_table().await?;
        let added: Vec<String> = channels.iter().filter(|channel| !table.wanted.contains(*channel)).cloned().collect();
        table.wanted.extend(added.iter().cloned());
        table.leaving.retain(|channel| !channels.contains(channel));
        let Some(mut live) = table.current.clone() else { return Err(self.why_not()) };
        let result = table.change(&mut live, self.subscriptions.is_sharded, &channels, &[]).await;
        match &result {
            Ok(()) => {}
            Err(TransportError::Refused(_)) => table.wanted.retain(|channel| !added.contains(channel)),
            Err(_) => self.subscriptions.repair.notify_one(),
        }
        result
    }

    pub(super) async fn unsubscribe(&self, channels: Vec<String>) -> Result<(), TransportError> {
        let mut table = self.lock_table().await?;
        table.wanted.retain(|channel| !channels.contains(channel));
        // Without a connection there is no subscription, and the next connection will not make it.
        let Some(mut live) = table.current.clone() else { return Ok(()) };
        let result = table.change(&mut live, self.subscriptions.is_sharded, &[], &channels).await;
        if result.is_err() {
            table.leaving.extend(channels);
            self.subscriptions.repair.notify_one();
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
        self.connection.close().await;
    }

    async fn lock_table(&self) -> Result<MutexGuard<'_, ChannelTable>, TransportError> {
        let table = self.subscriptions.table.lock().await;
        match self.connection.live() {
            Err(TransportError::Closed) => Err(TransportError::Closed),
            _ => Ok(table),
        }
    }

    fn why_not(&self) -> TransportError {
        match self.connection.live() {
            Ok(_) => TransportError::Disconnected("subscriptions are being renewed".to_owned()),
            Err(error) => error,
        }
    }
}

/// The subscriptions that there should be.
struct Subscriptions {
    is_sharded: bool,
    /// Locked while a change is sent to Redis, so that changes keep their order.
    table: Mutex<ChannelTable>,
    /// Wakes the task that repairs subscriptions which were not confirmed.
    repair: Notify,
}

/// Runs until the connection is closed.
async fn keep(
    mut connection: watch::Receiver<ConnectionState>,
    subscriptions: Arc<Subscriptions>,
    feed: Arc<EventFeed>,
) {
    loop {
        let state = connection.borrow_and_update().clone();
        let is_over = match state {
            ConnectionState::Up(client) => tokio::select! {
                () = serve(LiveConnection::new(client, connection.clone()), &subscriptions, &feed) => false,
                changed = connection.changed() => changed.is_err(),
            },
            ConnectionState::Down(_) => connection.changed().await.is_err(),
            ConnectionState::Closed => true,
        };
        if is_over || matches!(*connection.borrow(), ConnectionState::Closed) {
            return feed.close();
        }
        {
            // Before the event is reported, so that nobody who received it uses the connection that ended.
            let mut table = subscriptions.table.lock().await;
            table.current = None;
            table.leaving.clear();
        }
        feed.lost();
    }
}

/// Subscribes a new connection, and repairs its subscriptions later.
async fn serve(mut live: LiveConnection, subscriptions: &Subscriptions, feed: &EventFeed) {
    // Made before the first subscription, because fred drops messages that have no receiver.
    let messages = live.client.message_rx();
    renew(&mut live, subscriptions).await;
    feed.restored(messages);
    loop {
        subscriptions.repair.notified().await;
        renew(&mut live, subscriptions).await;
    }
}

async fn renew(live: &mut LiveConnection, subscriptions: &Subscriptions) {
    let mut is_logged = false;
    loop {
        let result = subscriptions.table.lock().await.renew(live, subscriptions.is_sharded).await;
        let Err(error) = result else { return };
        if !std::mem::replace(&mut is_logged, true) {
            tracing::warn!(%error, "channels are not subscribed yet");
        }
        sleep(RETRY_AFTER).await;
    }
}
