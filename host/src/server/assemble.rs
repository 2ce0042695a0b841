//! Makes the parts of the host and connects them, in the order in which they need each other.

use std::sync::Arc;

use anyhow::Context;
use socketioxide::{ParserConfig, layer::SocketIoLayer};
use socketioxide_redis_streams::Cluster;

use super::{memory, settings};
use crate::{
    calls::Calls,
    cluster::{Replicas, device_store::DeviceStore},
    config::{Config, ListenConfig},
    devices::Devices,
    edge::{
        admission::UserLimits,
        auth::Verifier,
        socketio::{Adapter, SocketIo},
    },
    operate::{drain_phase::Phase, probes::Probes},
    policies::{directory::PolicyDir, experiments::Experiments, records::Records, rollout::Rollouts, slots::Policies},
    sockets,
    telemetry::Tracer,
};

/// The read buffer of a socket, in bytes. Each socket keeps one for life; longer messages are read in larger pieces, see
/// [`connection`](crate::edge::connection).
const READ_BUFFER_BYTES: usize = 128;

/// The parts of a host that runs.
pub(super) struct Parts {
    pub(super) layer: SocketIoLayer<Adapter>,
    pub(super) io: SocketIo,
    pub(super) policies: Arc<Policies>,
    pub(super) policy_dir: PolicyDir,
    pub(super) replicas: Arc<Replicas>,
    pub(super) records: Arc<Records>,
    pub(super) tracer: Option<Arc<Tracer>>,
    pub(super) calls: Arc<Calls>,
    pub(super) devices: Arc<Devices>,
    pub(super) experiments: Arc<Experiments>,
    pub(super) rollouts: Rollouts,
    pub(super) phase: Phase,
    pub(super) probes: Arc<Probes>,
}

/// Makes all parts and starts their tasks. No client can connect yet.
///
/// # Errors
/// When a key cannot be read, the policy engine cannot start, or a setting cannot be used.
pub(super) fn assemble(config: &Config) -> anyhow::Result<Parts> {
    let verifier = Arc::new(Verifier::from_config(&config.auth).context("auth")?);
    let policies = Arc::new(Policies::new(&config.policy, &config.rpc)?);
    policies.write_trips_down().context("a thread for policy.state_dir")?;
    // Before the first socket: a call never meets a policy that is still being compiled.
    let policy_dir = PolicyDir::open(&config.policy, policies.clone())?;
    let replicas = Replicas::new(&config.redis, &config.listen, &config.rpc).context("redis")?;
    // Records carry the uid that the cluster gives this process. No decision was made before this line.
    let redis = replicas.redis().map(|redis| (redis, config.redis.channel_prefix.as_str()));
    let records = Records::start(&config.policy.records, replicas.cluster().uid(), redis)?;
    policies.record_to(records.clone());
    let tracer = Tracer::start(&config.trace, replicas.cluster().uid())?;
    let calls = Calls::start(&settings::call_settings(config), policies.clone(), replicas.clone(), tracer.clone());
    let (layer, io) = socketio(&config.listen, replicas.cluster().clone());
    let device_store = DeviceStore::of(&replicas, &config.redis);
    let devices = Devices::new(config, verifier.clone(), policies.clone(), replicas.clone(), device_store.clone());
    let experiments =
        Experiments::new(config, policies.clone(), replicas.clone(), device_store).context("experiments")?;
    let users = UserLimits::new(config.listen.connections_per_user_max.as_usize());
    sockets::root::mount(&io, verifier, calls.clone(), users);
    sockets::root::describe_sockets(&io, &replicas.cluster().namespace("/"));
    devices.start(&io);
    sockets::device::mount(&devices, &io);
    sockets::dashboard::mount(&devices, &io);
    replicas.start();
    let rollouts = Rollouts::start(config, &policies, &replicas)?;
    experiments.start(&rollouts);
    memory::keep_trimmed(io.clone());
    let phase = Phase::default();
    let probes = Arc::new(Probes {
        io: io.clone(),
        replicas: replicas.clone(),
        rollouts: rollouts.clone(),
        phase: phase.clone(),
    });
    Ok(Parts {
        layer,
        io,
        policies,
        policy_dir,
        replicas,
        records,
        tracer,
        calls,
        devices,
        experiments,
        rollouts,
        phase,
        probes,
    })
}

/// The Socket.IO server, and the layer by which HTTP reaches it.
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
