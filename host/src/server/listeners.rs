//! Opens the two listeners, one for clients and one for operators, and serves them.

use std::{future::Future, net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::Context;
use axum::{Router, middleware};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use super::{assemble::Parts, settings};
use crate::{
    config::Config,
    edge::{
        admission::ConnectionLimits,
        connection::ConnectionListener,
        http::{HttpTimeouts, request_head, serve},
        tls::{CertificateFiles, ListenerCertificate, TlsError},
        transport::{PollingSessions, track_polling},
    },
    operate::{
        admin::{self, Admin, Operator},
        drain_phase::refuse_new,
        probes,
    },
    telemetry::Metrics,
};

/// How long an operator may wait for an answer of the admin API: all replicas prepare a push.
const ADMIN_SILENCE_MAX: Duration = Duration::from_secs(900);

/// The longest pause between two requests on a connection of the admin listener. A scraper that asks once a minute keeps its
/// connection.
const ADMIN_HEAD_MAX: Duration = Duration::from_secs(75);

/// Where a started server listens.
#[derive(Debug, Clone, serde::Serialize)]
pub(super) struct Listening {
    /// URL of the Socket.IO endpoint, with its path.
    pub(super) socketio: String,
    /// URL of the admin API.
    pub(super) admin: String,
}

/// Both listeners, bound and not serving yet.
pub(super) struct Listeners {
    clients: TcpListener,
    operators: TcpListener,
    client_tls: Option<ListenerCertificate>,
    operator_tls: Option<ListenerCertificate>,
}

/// The tasks that serve the listeners.
pub(super) struct Serving {
    pub(super) clients: JoinHandle<()>,
    pub(super) operators: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Listeners {
    /// Binds both addresses and reads the certificates.
    ///
    /// # Errors
    /// When an address cannot be bound, or a certificate cannot be used.
    pub(super) async fn open(config: &Config) -> anyhow::Result<Self> {
        Ok(Self {
            clients: bind(config.listen.address, "listen.address").await?,
            operators: bind(config.admin.address, "admin.address").await?,
            client_tls: tls_of_clients(config).context("listen.tls")?,
            operator_tls: tls_of_operators(config).context("admin.tls")?,
        })
    }

    /// Where they listen.
    ///
    /// # Errors
    /// When the system does not tell.
    pub(super) fn addresses(&self, config: &Config) -> anyhow::Result<Listening> {
        let scheme = |tls: &Option<ListenerCertificate>| if tls.is_some() { "https" } else { "http" };
        let (clients, operators) = (scheme(&self.client_tls), scheme(&self.operator_tls));
        Ok(Listening {
            socketio: format!("{clients}://{}{}", self.clients.local_addr()?, config.listen.path),
            admin: format!("{operators}://{}", self.operators.local_addr()?),
        })
    }

    /// Begins to accept connections.
    pub(super) fn serve(self, config: &Config, parts: &Parts, metrics: Metrics) -> Serving {
        let silence_max = settings::silence_max(&config.listen);
        let first_head = config.listen.head_timeout_ms.as_millis();
        let timeouts = HttpTimeouts { first_head, next_head: silence_max, body: silence_max };
        let admin_timeouts = HttpTimeouts { first_head, next_head: ADMIN_HEAD_MAX, body: ADMIN_SILENCE_MAX };
        let clients = ConnectionListener::new(
            self.clients,
            silence_max,
            ConnectionLimits::of_clients(&config.listen),
            self.client_tls,
        );
        let operators = ConnectionListener::new(
            self.operators,
            ADMIN_SILENCE_MAX,
            ConnectionLimits::of_operators(),
            self.operator_tls,
        );
        let (stop, _) = watch::channel(false);
        let (app, admin) = (client_routes(config, parts), operator_routes(config, parts, metrics));
        Serving {
            clients: tokio::spawn(serve(clients, app, timeouts, |_, connection| connection, stopped(&stop))),
            operators: tokio::spawn(serve(operators, admin, admin_timeouts, Operator::new, stopped(&stop))),
            stop,
        }
    }
}

impl Serving {
    /// Stops accepting connections. Those that are open go on.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }
}

fn client_routes(config: &Config, parts: &Parts) -> Router {
    probes::routes(parts.probes.clone())
        .layer(parts.layer.clone())
        .layer(middleware::from_fn_with_state(parts.phase.clone(), refuse_new))
        .layer(settings::cors(&config.listen))
        .layer(middleware::from_fn_with_state(PollingSessions::default(), track_polling))
        .layer(middleware::map_request(request_head::detach))
}

fn operator_routes(config: &Config, parts: &Parts, metrics: Metrics) -> Router {
    admin::router(Admin {
        probes: parts.probes.clone(),
        io: parts.io.clone(),
        calls: parts.calls.clone(),
        policies: parts.policies.clone(),
        records: parts.records.clone(),
        policy_files: parts.policy_dir.reloads(),
        rollouts: parts.rollouts.clone(),
        experiments: parts.experiments.clone(),
        devices: parts.devices.clone(),
        metrics,
        token: config.admin.token.clone(),
    })
}

async fn bind(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{setting}: cannot listen on {address}"))
}

fn tls_of_clients(config: &Config) -> Result<Option<ListenerCertificate>, TlsError> {
    let tls = &config.listen.tls;
    tls_of(&tls.cert, &tls.key, None)
        .map(|files| ListenerCertificate::open(files, "clients", tls.reload_ms.as_millis()))
        .transpose()
}

fn tls_of_operators(config: &Config) -> Result<Option<ListenerCertificate>, TlsError> {
    let tls = &config.admin.tls;
    let files = tls_of(&tls.cert, &tls.key, tls.client_ca.clone());
    files.map(|files| ListenerCertificate::open(files, "admin", tls.reload_ms.as_millis())).transpose()
}

fn tls_of(cert: &Option<PathBuf>, key: &Option<PathBuf>, client_ca: Option<PathBuf>) -> Option<CertificateFiles> {
    Some(CertificateFiles { cert: cert.clone()?, key: key.clone()?, client_ca })
}

fn stopped(stop: &watch::Sender<bool>) -> impl Future<Output = ()> + Send + 'static {
    let mut stop = stop.subscribe();
    async move {
        let _ = stop.wait_for(|stop| *stop).await;
    }
}
