//! Feeds the machine of peers with the time and its inputs, and passes its events to the application's listener.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

use super::listener::Listener;
use super::peers::{PeerEvent, Peers, Timing};
use crate::settings::Settings;

/// The peers of a replica that shares a cluster.
pub(crate) struct PeerTracker {
    peers: Mutex<Peers>,
    started: Instant,
    listener: OnceLock<Arc<dyn Listener>>,
    /// How many servers of another kind share the root namespace.
    foreign_servers: AtomicU64,
}

impl PeerTracker {
    pub(crate) fn new(settings: &Settings) -> Self {
        let timing = Timing {
            lost_after: settings.lost_after,
            link_lost_after: settings.link_lost_after(),
            gone_after: settings.gone_after(),
        };
        PeerTracker {
            peers: Mutex::new(Peers::new(timing)),
            started: Instant::now(),
            listener: OnceLock::new(),
            foreign_servers: AtomicU64::new(0),
        }
    }

    /// Sets the listener. Only the first call has an effect.
    pub(crate) fn set_listener(&self, listener: Arc<dyn Listener>) {
        let _ = self.listener.set(listener);
    }

    pub(crate) fn listener(&self) -> Option<&Arc<dyn Listener>> {
        self.listener.get()
    }

    /// Reads from the machine.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Peers, Duration) -> T) -> T {
        read(&self.peers.lock(), self.started.elapsed())
    }

    /// Gives the machine an input, then passes its events to the listener in their order.
    pub(crate) fn step<T>(&self, step: impl FnOnce(&mut Peers, Duration) -> T) -> T {
        // The lock is held during the calls of the listener, so that two tasks cannot change the order of events.
        let mut peers = self.peers.lock();
        let result = step(&mut peers, self.started.elapsed());
        while let Some(event) = peers.next_event() {
            log(&event);
            if let Some(listener) = self.listener.get() {
                listener.peer(event);
            }
        }
        result
    }

    /// The uids of all peers, also of silent ones.
    pub(crate) fn uids(&self) -> Vec<String> {
        self.read(|peers, _| peers.uids().cloned().collect())
    }

    pub(crate) fn foreign_servers(&self) -> u64 {
        self.foreign_servers.load(Ordering::Relaxed)
    }

    pub(crate) fn set_foreign_servers(&self, servers: u64) {
        self.foreign_servers.store(servers, Ordering::Relaxed);
        #[expect(clippy::cast_precision_loss, reason = "a gauge")]
        metrics::gauge!("adapter_foreign_servers").set(servers as f64);
    }
}

fn log(event: &PeerEvent) {
    match event {
        PeerEvent::Heard { .. } => {}
        PeerEvent::Link { up: true } => tracing::info!("linked to the cluster"),
        PeerEvent::Link { up: false } => {
            metrics::counter!("adapter_link_lost_total").increment(1);
            tracing::warn!("the link to the cluster is down: other replicas cannot be reached");
        }
        PeerEvent::Lost { peer, loss } => {
            metrics::counter!("adapter_peers_lost_total", "loss" => loss.name()).increment(1);
            tracing::info!(peer, loss = loss.name(), "a peer was lost");
        }
    }
}
