//! Puts the parts together and runs them: listeners, Socket.IO, the root namespace, policies, the admin API.

use std::{future::Future, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use axum::middleware;
use pointwork_core::Settings;
use socketioxide::{ParserConfig, layer::SocketIoLayer};
use socketioxide_redis_streams::Cluster;
use tokio::{net::TcpListener, sync::watch, time::Instant};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};
use wildmatch::WildMatch;

use crate::{
    admin::{self, Admin, Operator},
    admission::{Admission, Users},
    auth::Verifier,
    cluster::Replicas,
    config::{Config, CorsOrigins, ListenConfig},
    device::Devices,
    drain::{Drain, Left, Phase, refuse_new},
    experiments::Experiments,
    head,
    io::{Adapter, SocketIo, connected},
    line::Lines,
    memory,
    policies::Policies,
    policy_dir::PolicyDir,
    probes::{self, Probes},
    records::Records,
    rollout::Rollouts,
    root,
    rpc::{Deadlines, LookupSettings, Rpc, RpcSettings},
    serve::{Patience, serve},
    shed::{Upgrades, note_upgrade},
    signals::Signals,
    telemetry::{MethodLabels, Metrics, Tracer},
    tls::{Files, Tls, TlsError},
};

/// How long connections may take to end after the sockets were closed.
const CLOSING_MAX: Duration = Duration::from_secs(2);

/// Each socket keeps such a buffer for as long as it lives. What is longer is read by larger pieces, see [`line`](crate::line).
const READ_BUFFER_BYTES: usize = 128;

/// Who asks the admin API may wait so long for an answer: a push is prepared by all replicas.
const ADMIN_SILENCE_MAX: Duration = Duration::from_secs(900);

/// Between two requests on a connection of the admin listener. Whoever scrapes metrics each minute keeps its own.
const ADMIN_HEAD_MAX: Duration = Duration::from_secs(75);

/// Where a started server listens.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Listening {
    /// URL of the Socket.IO endpoint, with its path.
    pub socketio: String,
    /// URL of the admin API.
    pub admin: String,
}

/// Serves until SIGTERM, SIGINT or SIGHUP, then leaves in order: calls end, sockets are closed by and by. Another signal
/// ends it at once.
///
/// `ready` is called once, when both listeners accept.
///
/// # Errors
/// When a listener cannot be bound, a key cannot be read, or the policy engine cannot start.
pub async fn run(config: Config, metrics: Metrics, ready: impl FnOnce(&Listening)) -> anyhow::Result<()> {
    if config.listen.max_buffer_packets.get() <= config.rpc.calls_per_user_max.get() {
        tracing::warn!(
            "listen.max_buffer_packets is not above rpc.calls_per_user_max: a burst of calls can cut off a daemon"
        );
    }
    if config.redis.lost_after_ms.get() < 2 * config.redis.heartbeat_ms.get() {
        tracing::warn!("redis.lost_after_ms is less than two heartbeats: replicas that live can be taken for silent");
    }
    if config.admin.is_plain_beyond_loopback() {
        tracing::warn!(
            "admin.address is no loopback address and there is no admin.tls: the token goes over the network in the clear, \
             unless something in front of the host speaks TLS"
        );
    }
    let mut signals = Signals::new()?;
    let verifier = Arc::new(Verifier::from_config(&config.auth).context("auth")?);
    let policies = Arc::new(Policies::new(&config.policy, &config.rpc)?);
    policies.write_trips_down().context("a thread for policy.state_dir")?;
    // Before the first socket: a call never meets a policy that is still being compiled.
    let policy_dir = PolicyDir::open(&config.policy, policies.clone())?;
    let replicas = Replicas::new(&config.redis, &config.listen, &config.rpc).context("redis")?;
    // The engine was there before the cluster, whose id of this process the records have; no decision was made yet.
    let redis = replicas.redis().map(|redis| (redis, config.redis.channel_prefix.as_str()));
    let records = Records::start(&config.policy.records, replicas.cluster().uid(), redis)?;
    policies.record_to(records.clone());
    let tracer = Tracer::start(&config.trace, replicas.cluster().uid())?;
    let rpc = Rpc::start(&rpc_settings(&config), policies.clone(), replicas.clone(), tracer.clone());
    let (layer, io) = socketio(&config.listen, replicas.cluster().clone());
    let devices = Devices::new(&config, verifier.clone(), policies.clone(), replicas.clone());
    let experiments = Experiments::new(&config, policies.clone(), replicas.clone()).context("experiments")?;
    let users = Users::new(config.listen.connections_per_user_max.as_usize());
    root::mount(&io, verifier, rpc.clone(), users);
    devices.start(&io);
    root::describe_sockets(&io, &replicas.cluster().namespace("/"));
    replicas.start(&rpc, &devices);
    let rollouts = Rollouts::start(&config, &policies, &replicas)?;
    experiments.start(&devices, &rollouts);
    memory::keep_trimmed(io.clone());

    let listener = bind(config.listen.address, "listen.address").await?;
    let admin_listener = bind(config.admin.address, "admin.address").await?;
    let tls = tls_of_clients(&config).context("listen.tls")?;
    let admin_tls = tls_of_operators(&config).context("admin.tls")?;
    let scheme = |tls: &Option<Tls>| if tls.is_some() { "https" } else { "http" };
    let listening = Listening {
        socketio: format!("{}://{}{}", scheme(&tls), listener.local_addr()?, config.listen.path),
        admin: format!("{}://{}", scheme(&admin_tls), admin_listener.local_addr()?),
    };
    let phase = Phase::default();
    let probes = Arc::new(Probes {
        io: io.clone(),
        replicas: replicas.clone(),
        rollouts: rollouts.clone(),
        phase: phase.clone(),
    });
    let app = probes::routes(probes.clone())
        .layer(layer)
        .layer(middleware::from_fn_with_state(phase.clone(), refuse_new))
        .layer(cors(&config.listen))
        .layer(middleware::from_fn_with_state(Upgrades::default(), note_upgrade))
        .layer(middleware::map_request(head::detach));
    let admin = admin::router(Admin {
        probes,
        io: io.clone(),
        rpc: rpc.clone(),
        policies,
        records: records.clone(),
        policy_files: policy_dir.reloads(),
        rollouts: rollouts.clone(),
        experiments,
        devices: devices.clone(),
        metrics,
        token: config.admin.token.clone(),
    });

    let silence_max = silence_max(&config.listen);
    let lines = Lines::new(listener, silence_max, Admission::of_clients(&config.listen), tls);
    let admin_lines = Lines::new(admin_listener, ADMIN_SILENCE_MAX, Admission::of_operators(), admin_tls);
    let first_head = config.listen.head_timeout_ms.as_millis();
    let patience = Patience { first_head, next_head: silence_max, body: silence_max };
    let admin_patience = Patience { first_head, next_head: ADMIN_HEAD_MAX, body: ADMIN_SILENCE_MAX };
    let (stop, _) = watch::channel(false);
    let sockets = tokio::spawn(serve(lines, app, patience, |_, line| line, stopped(&stop)));
    let admin = tokio::spawn(serve(admin_lines, admin, admin_patience, Operator::new, stopped(&stop)));
    tracing::info!(socketio = listening.socketio, admin = listening.admin, "listening");
    ready(&listening);

    let signal = signals.next().await;
    let began = Instant::now();
    tracing::info!(signal, sockets = connected(&io), "leaving");
    let drain = Drain { io: io.clone(), rpc, replicas: replicas.clone(), phase: phase.clone(), settings: config.drain };
    let closing = async {
        let left = drain.run().await;
        stop.send_replace(true);
        root::leave(&io);
        devices.leave().await;
        let closed = async {
            io.close().await;
            let _ = tokio::join!(sockets, admin);
        };
        if tokio::time::timeout(CLOSING_MAX, closed).await.is_err() {
            tracing::warn!("connections were still open and are cut");
        }
        records.close().await;
        rollouts.leave().await;
        replicas.cluster().close().await;
        if let Some(tracer) = tracer {
            tracer.close().await;
        }
        left
    };
    tokio::select! {
        left = closing => {
            let Left { sockets_closed, calls_finished, calls_broken_off } = left;
            let took_ms = began.elapsed().as_millis();
            tracing::info!(signal, sockets_closed, calls_finished, calls_broken_off, took_ms, "closed");
        }
        signal = signals.next() => tracing::warn!(signal, sockets = connected(&io), "stopped at once"),
    }
    policy_dir.close();
    Ok(())
}

fn socketio(listen: &ListenConfig, cluster: Cluster) -> (SocketIoLayer<Adapter>, SocketIo) {
    let payload = listen.max_payload_bytes.as_usize();
    socketioxide::SocketIo::builder()
        .with_adapter::<Adapter>(cluster)
        .with_parser(ParserConfig::common().max_incoming_binary_buf_size(payload))
        .req_path(listen.path.as_str().to_owned())
        .ping_interval(listen.ping_interval_ms.as_millis())
        .ping_timeout(listen.ping_timeout_ms.as_millis())
        .connect_timeout(listen.connect_timeout_ms.as_millis())
        .max_payload(payload as u64)
        .ws_read_buffer_size(READ_BUFFER_BYTES)
        .ws_max_message_size(payload)
        .ws_max_frame_size(payload)
        .max_buffer_size(listen.max_buffer_packets.as_usize())
        .build_layer()
}

fn rpc_settings(Config { rpc, metrics, .. }: &Config) -> RpcSettings {
    let ruled = rpc.method.iter().map(|rule| &rule.pattern);
    let labels = MethodLabels {
        patterns: metrics.method_labels.iter().chain(ruled).cloned().collect(),
        registered_max: metrics.methods_max.as_usize(),
    };
    let limits = Settings {
        calls_per_user_max: rpc.calls_per_user_max.as_usize(),
        waiting_per_room_max: rpc.waiting_per_method_max.as_usize(),
        methods_per_socket_max: rpc.methods_per_socket_max.as_usize(),
        method_bytes_per_socket_max: rpc.method_bytes_per_socket_max.as_usize(),
        method_bytes_max: rpc.method_bytes_max.as_usize(),
        ..Settings::default()
    };
    RpcSettings {
        deadlines: Deadlines {
            methods: rpc
                .method
                .iter()
                .map(|rule| (WildMatch::new(&rule.pattern), rule.timeout_ms.as_millis()))
                .collect(),
            default: rpc.call_timeout_ms.as_millis(),
            asked_max: rpc.asked_timeout_max_ms.as_millis(),
        },
        calls_max: rpc.calls_max.as_usize(),
        request_memory_max: rpc.request_memory_mib.as_usize() << 20,
        params_bytes_max: rpc.params_bytes_max.as_usize(),
        lookup: LookupSettings {
            timeout: rpc.presence_fetch_timeout_ms.as_millis(),
            while_waiting: rpc.reconnect_poll_ms.as_millis(),
            while_in_flight: rpc.presence_poll_ms.as_millis(),
        },
        limits,
        labels,
    }
}

/// The field's clients send credentials from any origin, so the origin is mirrored: `*` is not allowed with credentials.
fn cors(listen: &ListenConfig) -> CorsLayer {
    let origin = match &listen.cors_origins {
        CorsOrigins::Any => AllowOrigin::mirror_request(),
        CorsOrigins::Listed(origins) => AllowOrigin::list(origins.iter().cloned()),
    };
    CorsLayer::new()
        .allow_origin(origin)
        .allow_credentials(true)
        .allow_headers(AllowHeaders::mirror_request())
        .allow_methods(AllowMethods::mirror_request())
}

/// An engine's client answers a ping of every interval, and a poll never lasts longer than one. A little more, so that the engine
/// is the one that notices whenever it can.
fn silence_max(listen: &ListenConfig) -> Duration {
    listen.ping_interval_ms.as_millis() + listen.ping_timeout_ms.as_millis() + Duration::from_secs(1)
}

async fn bind(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{setting}: cannot listen on {address}"))
}

fn tls_of_clients(config: &Config) -> Result<Option<Tls>, TlsError> {
    let tls = &config.listen.tls;
    tls_of(&tls.cert, &tls.key, None).map(|files| Tls::open(files, "clients", tls.reload_ms.as_millis())).transpose()
}

fn tls_of_operators(config: &Config) -> Result<Option<Tls>, TlsError> {
    let tls = &config.admin.tls;
    let files = tls_of(&tls.cert, &tls.key, tls.client_ca.clone());
    files.map(|files| Tls::open(files, "admin", tls.reload_ms.as_millis())).transpose()
}

fn tls_of(cert: &Option<PathBuf>, key: &Option<PathBuf>, client_ca: Option<PathBuf>) -> Option<Files> {
    Some(Files { cert: cert.clone()?, key: key.clone()?, client_ca })
}

fn stopped(stop: &watch::Sender<bool>) -> impl Future<Output = ()> + Send + 'static {
    let mut stop = stop.subscribe();
    async move {
        let _ = stop.wait_for(|stop| *stop).await;
    }
}
