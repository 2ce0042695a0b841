//! Broadcasts: one room of many sockets, half of them at each replica; each event comes from `POST /v1/emit` of the first
//! replica, which both kinds have alike, and goes through the stream to the other one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tokio::{sync::Notify, task::JoinHandle, time::timeout};

use super::{users::User, wire::Wire};
use crate::servers::{cluster::Pair, http};

/// So many events are on their way at once at most: the servers are kept busy, and no client is a slow one.
const AT_ONCE_MAX: usize = 4;
const TEXT_BYTES: usize = 256;
/// Of one event.
const DELIVERED_WITHIN: Duration = Duration::from_secs(30);

/// The sockets of a room.
pub(crate) struct Audience {
    room: String,
    size: usize,
    received: Arc<Received>,
    listening: Vec<JoinHandle<Result<()>>>,
}

/// How many deliveries there were.
#[derive(Default)]
struct Received {
    count: AtomicUsize,
    /// A whole event's worth of them.
    more: Notify,
}

impl Audience {
    /// So many apps of one user.
    pub(crate) async fn connect(pair: &Pair<'_>, size: usize) -> Result<Self> {
        let user = User::new(0)?;
        let mut audience = Self {
            room: format!("user:{}", user.id),
            size,
            received: Arc::default(),
            listening: Vec::with_capacity(size),
        };
        for index in 0..size {
            let replica = if index % 2 == 0 { &pair.a } else { &pair.b };
            let wire = Wire::connect(replica.socketio(), &user.app()).await?;
            audience.listening.push(tokio::spawn(listen(wire, audience.received.clone(), size)));
        }
        Ok(audience)
    }

    /// Emits so many events and waits until everybody has each of them; gives the number of deliveries.
    pub(crate) async fn hear(&self, pair: &Pair<'_>, events: usize) -> Result<usize> {
        let url = format!("{}/v1/emit", pair.a.admin());
        let room = &self.room;
        let body = format!(
            r#"{{"rooms":["{room}"],"event":"update","args":[{{"id":"u-1","text":"{}"}}]}}"#,
            "dXBkYXRlIG9mIHNv".repeat(TEXT_BYTES / 16)
        );
        let before = self.received.count.load(Ordering::Relaxed);
        for sent in 1..=events {
            http::post(&url, &body).await?;
            self.reach(before + (sent.saturating_sub(AT_ONCE_MAX - 1)) * self.size).await?;
        }
        self.reach(before + events * self.size).await?;
        let received = self.received.count.load(Ordering::Relaxed) - before;
        ensure!(received == events * self.size, "{received} deliveries of {events} events to {} sockets", self.size);
        Ok(received)
    }

    /// Closes all connections; errors when one had ended before.
    pub(crate) async fn leave(self) -> Result<()> {
        for socket in self.listening {
            if socket.is_finished() {
                socket.await?.context("a socket of the room")?;
            } else {
                socket.abort();
            }
        }
        Ok(())
    }

    async fn reach(&self, count: usize) -> Result<()> {
        while self.received.count.load(Ordering::Relaxed) < count {
            let more = timeout(DELIVERED_WITHIN, self.received.more.notified()).await;
            more.with_context(|| format!("{} of {count} deliveries", self.received.count.load(Ordering::Relaxed)))?;
        }
        Ok(())
    }
}

async fn listen(mut wire: Wire, received: Arc<Received>, size: usize) -> Result<()> {
    loop {
        if wire.next().await?.starts_with(br#"42["update","#) {
            let count = received.count.fetch_add(1, Ordering::Relaxed) + 1;
            if count.is_multiple_of(size) {
                received.more.notify_one();
            }
        }
    }
}
