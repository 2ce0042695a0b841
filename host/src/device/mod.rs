//! Devices: which of a device's sockets is the one that counts.
//!
//! The machine ([`Sessions`]) decides, here as in the simulation; this carries out what it says, and brings it what happens: to
//! sockets of the namespace `/device`, to the records in the store, to other replicas. A decision is taken where its event
//! arrives; what has to be waited for (the store, another replica) comes back as an event of its own.

mod asked;
mod carry;
mod dashboards;
mod events;
mod lag;
mod operate;
mod peers;
mod store;
mod tokens;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use pointwork_core::{
    SocketId, Time,
    decision::Departure,
    device::{DeviceCommand, Moment, Sessions},
    time::span_ms,
};
use socketioxide_redis_streams::Namespace;
use tokio::time::{Instant, sleep};

pub use self::operate::{Change, OperateError, Overview};
use self::{asked::Asked, store::Store, tokens::Tokens};
use crate::{
    alarm::Alarm,
    auth::Verifier,
    clock::unix_ms,
    cluster::Replicas,
    config::Config,
    io::{SocketIo, SocketRef},
    lock::lock,
    policies::Policies,
    shed::silence,
};

/// The namespace of devices.
pub(crate) const DEVICE_NSP: &str = "/device";
/// The namespace of those who watch them.
pub(crate) const DASHBOARD_NSP: &str = "/dashboard";

/// How long the store may take to be told that this replica's devices are gone.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

/// The devices of this replica.
pub struct Devices {
    state: Mutex<State>,
    alarm: Alarm,
    store: Store,
    tokens: Tokens,
    policies: Arc<Policies>,
    replicas: Arc<Replicas>,
    namespace: Arc<Namespace>,
    io: OnceLock<SocketIo>,
    started: Instant,
}

struct State {
    sessions: Sessions,
    /// Exactly those that the machine knows.
    sockets: HashMap<SocketId, Client>,
    asked: Asked,
}

/// A device's socket, and what it brought to register with.
struct Client {
    socket: SocketRef,
    /// The id that it claims.
    claimed: Option<Arc<str>>,
    token: Option<String>,
}

impl Devices {
    /// The devices of a replica. Nothing happens before [`Devices::start`].
    #[must_use]
    pub fn new(
        config: &Config,
        verifier: Arc<Verifier>,
        policies: Arc<Policies>,
        replicas: Arc<Replicas>,
    ) -> Arc<Self> {
        let cluster = replicas.cluster();
        let store = match replicas.redis() {
            Some(redis) => Store::redis(redis.clone(), &format!("{}#", config.redis.channel_prefix)),
            None => Store::alone(),
        };
        let sessions = Sessions::new(cluster.uid().into(), config.device.settings());
        Arc::new(Self {
            state: Mutex::new(State { sessions, sockets: HashMap::new(), asked: Asked::default() }),
            alarm: Alarm::new(),
            store,
            tokens: Tokens::new(verifier, config.auth.clone()),
            policies,
            namespace: cluster.namespace(DEVICE_NSP),
            replicas,
            io: OnceLock::new(),
            started: Instant::now(),
        })
    }

    /// Mounts the namespaces and starts the timers, which run for as long as the current runtime.
    pub fn start(self: &Arc<Self>, io: &SocketIo) {
        let _ = self.io.set(io.clone());
        events::mount(self, io);
        dashboards::mount(self, io);
        peers::serve(self);
        lag::watch(self);
        let this = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(devices) = this.upgrade() {
                devices.due().await;
                devices.drive(|state, at| state.sessions.handle_timeout(at));
            }
        });
    }

    /// The server is about to be closed, which ends connections without a word: the store is told of each device.
    pub(crate) async fn leave(self: &Arc<Self>) {
        let sockets: Vec<SocketId> = lock(&self.state).sockets.keys().copied().collect();
        for socket in sockets {
            self.closed(socket, Departure::Drained);
        }
        let told = async {
            while lock(&self.state).sessions.load().working > 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(FAREWELL_MAX, told).await.is_err() {
            tracing::warn!("the store was not told of every device that is gone");
        }
    }

    /// Brings what the machine holds to the metrics.
    pub(crate) fn publish(&self, io: &SocketIo) {
        let load = lock(&self.state).sessions.load();
        let dashboards = io.of(DASHBOARD_NSP).map_or(0, |dashboards| dashboards.sockets().len());
        metrics::gauge!("pointwork_device_sockets").set(load.sockets as f64);
        metrics::gauge!("pointwork_device_holders").set(load.holders as f64);
        metrics::gauge!("websocket_connections_total", "type" => "device").set(load.sockets as f64);
        metrics::gauge!("websocket_connections_total", "type" => "dashboard").set(dashboards as f64);
    }

    /// A socket is closed, by whomever.
    fn closed(self: &Arc<Self>, socket: SocketId, how: Departure) {
        self.drive(|state, at| {
            if let Some(client) = state.sockets.remove(&socket) {
                if let Some(silent) = silence(&client.socket) {
                    state.sessions.handle_heard(socket, span_ms(silent), at);
                }
                state.sessions.handle_close(socket, how, at);
            }
        });
    }

    /// Takes one step of the machine and gives its result with what it wants done, in order.
    fn step<T>(&self, step: impl FnOnce(&mut State, Moment) -> T) -> (T, Vec<DeviceCommand>) {
        let mut state = lock(&self.state);
        let result = step(&mut state, self.moment());
        let commands = std::iter::from_fn(|| state.sessions.next_command()).collect();
        let next = state.sessions.poll_timeout();
        drop(state);
        self.alarm.set(next);
        (result, commands)
    }

    /// Waits until the machine's next deadline has come.
    async fn due(&self) {
        self.alarm.due(|| lock(&self.state).sessions.poll_timeout(), || self.moment().now).await;
    }

    fn moment(&self) -> Moment {
        let micros = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        Moment { now: Time::from_micros(micros), unix_ms: unix_ms() }
    }
}
