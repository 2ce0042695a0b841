//! The devices of this replica: the machine of their sessions, and the sockets that its ids stand for.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use pointwork_core::{
    SocketId, Time,
    decisions::Departure,
    devices::{DeviceCommand, DeviceSessions, Moment},
};
use socketioxide_redis_streams::Namespace;
use tokio::time::sleep;

use super::{settle_sources::SettleSources, tokens::Tokens};
use crate::{
    cluster::{Replicas, device_store::DeviceStore},
    config::Config,
    driver::{Clock, Driver, Machine, clock::unix_ms},
    edge::{
        auth::Verifier,
        socketio::{SocketIo, SocketRef},
    },
    policies::slots::Policies,
};

/// The namespace of devices.
pub(crate) const DEVICE_NSP: &str = "/device";
/// The namespace of the users who watch devices.
pub(crate) const DASHBOARD_NSP: &str = "/dashboard";

/// How long the store may take to hear that this replica's devices are gone.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

/// The devices of this replica.
pub struct Devices {
    pub(super) driver: Driver<SessionsState>,
    pub(super) store: Arc<DeviceStore>,
    pub(super) tokens: Tokens,
    pub(super) policies: Arc<Policies>,
    pub(super) replicas: Arc<Replicas>,
    pub(super) namespace: Arc<Namespace>,
    pub(super) io: OnceLock<SocketIo>,
}

/// What the driver's lock guards.
pub(super) struct SessionsState {
    pub(super) sessions: DeviceSessions,
    /// Exactly those that the machine knows.
    pub(super) clients: HashMap<SocketId, DeviceClient>,
    pub(super) settle_sources: SettleSources,
}

/// A device's socket, and what it brought to register with.
pub(super) struct DeviceClient {
    pub(super) socket: SocketRef,
    /// The id that it claims.
    pub(super) claimed: Option<Arc<str>>,
    pub(super) token: Option<String>,
}

impl Machine for SessionsState {
    type Command = DeviceCommand;

    fn next_command(&mut self) -> Option<DeviceCommand> {
        self.sessions.next_command()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.sessions.poll_timeout()
    }
}

/// Makes a step that is told the wall clock's time too.
pub(super) fn at_moment<T>(
    step: impl FnOnce(&mut SessionsState, Moment) -> T,
) -> impl FnOnce(&mut SessionsState, Time) -> T {
    |state, now| step(state, Moment { now, unix_ms: unix_ms() })
}

impl Devices {
    /// The devices of a replica. Nothing happens before [`Devices::start`].
    #[must_use]
    pub fn new(
        config: &Config,
        verifier: Arc<Verifier>,
        policies: Arc<Policies>,
        replicas: Arc<Replicas>,
        store: Arc<DeviceStore>,
    ) -> Arc<Self> {
        let cluster = replicas.cluster();
        let sessions = DeviceSessions::new(cluster.uid().into(), config.device.settings());
        let state = SessionsState { sessions, clients: HashMap::new(), settle_sources: SettleSources::default() };
        Arc::new(Self {
            driver: Driver::new(state, Clock::start()),
            store,
            tokens: Tokens::new(verifier, config.auth.clone()),
            policies,
            namespace: cluster.namespace(DEVICE_NSP),
            replicas,
            io: OnceLock::new(),
        })
    }

    /// The server is about to close, which ends connections without a disconnect: writes the end of each session to the store.
    pub(crate) async fn leave(self: &Arc<Self>) {
        for socket in self.driver.peek(|state| state.clients.keys().copied().collect::<Vec<_>>()) {
            self.disconnect(socket, Departure::Drained);
        }
        let written = async {
            while self.driver.peek(|state| state.sessions.load().working > 0) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(FAREWELL_MAX, written).await.is_err() {
            tracing::warn!("the store was not told of every device that is gone");
        }
    }

    /// Writes the counts of devices to the metrics.
    pub(crate) fn publish(&self, io: &SocketIo) {
        let load = self.driver.peek(|state| state.sessions.load());
        let dashboards = io.of(DASHBOARD_NSP).map_or(0, |dashboards| dashboards.sockets().len());
        metrics::gauge!("pointwork_device_sockets").set(load.sockets as f64);
        metrics::gauge!("pointwork_device_holders").set(load.holders as f64);
        metrics::gauge!("websocket_connections_total", "type" => "device").set(load.sockets as f64);
        metrics::gauge!("websocket_connections_total", "type" => "dashboard").set(dashboards as f64);
    }
}
