//! The RPC layer: feeds clients' events to the call machine and carries out what it says.
//!
//! A user's sockets, methods and calls live in one shard, a [`pointwork_core::Switchboard`] behind a mutex. An event is
//! handled where it arrives: the shard is locked, the machine takes the event, its commands are read off, the lock is
//! let go, and only then are the commands carried out. Policies are asked outside the lock, so a slow one holds up its
//! own call alone.

mod asked;
mod carry;
mod deadlines;
mod held;
mod lookup;
mod places;
mod remote;
mod request;
mod resume;
mod shard;

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use self::resume::Resumable;
pub(crate) use self::resume::{Resumed, Superseded};
use self::{
    asked::{Asked, Refusal},
    held::{Held, Request},
    lookup::Lookups,
    places::Places,
    shard::{Seat, Shard},
};
pub use self::{deadlines::Deadlines, lookup::LookupSettings};
use crate::{
    cluster::Replicas,
    deliver::{acknowledge, tell},
    identity::{Capabilities, Identity},
    io::{AckSender, SocketRef},
    policies::Policies,
    telemetry::{Ended, Label, MethodLabels, Methods, Page, Tracer},
    wire::{Answer, Incoming, memory_bytes},
};
use pointwork_core::{
    CallRefused, Settings, SocketId, Time,
    call::message,
    decision::{Departure, Traits},
    room,
};
use socketioxide::socket::Sid;
use socketioxide_redis_streams::Namespace;
use tokio::{sync::Semaphore, time::Instant};

/// Shards of the directory and the calls: enough that two cores seldom meet on one.
const SHARDS: usize = 32;

/// What the RPC layer is given at start.
#[derive(Debug, Clone)]
pub struct RpcSettings {
    /// How long a daemon may take to answer a request.
    pub deadlines: Deadlines,
    /// Calls that may be open at once, in all shards together.
    pub calls_max: usize,
    /// How much memory their parameters may take together, in bytes.
    pub request_memory_max: usize,
    /// How large a call may be as it comes, in bytes.
    pub params_bytes_max: usize,
    /// How servers of another kind are asked for daemons.
    pub lookup: LookupSettings,
    /// Which methods are counted apart.
    pub labels: MethodLabels,
    /// Bounds of each shard; its own bound of calls is not used, for users are not spread evenly over the shards.
    pub limits: Settings,
}

/// A client as the RPC layer knows it, worked out once for each connection.
pub struct Party {
    user: Arc<str>,
    capabilities: Capabilities,
    /// Stands for what the client is within its user.
    client: u64,
    /// Stands for the user in a policy's input.
    key: u64,
    shard: usize,
}

/// The RPC layer of this replica.
pub struct Rpc {
    shards: Box<[Shard]>,
    hasher: RandomState,
    policies: Arc<Policies>,
    deadlines: Deadlines,
    methods: Methods,
    /// Nothing without a collector.
    tracer: Option<Arc<Tracer>>,
    places: Places,
    params_bytes_max: usize,
    replicas: Arc<Replicas>,
    namespace: Arc<Namespace>,
    lookup: LookupSettings,
    lookups: Lookups,
    /// Turns of lookups.
    looking: Semaphore,
    taken: AtomicU64,
    started: Instant,
}

impl Rpc {
    /// Starts the layer and its timers, which run for as long as the current runtime.
    #[must_use]
    pub fn start(
        settings: &RpcSettings,
        policies: Arc<Policies>,
        replicas: Arc<Replicas>,
        tracer: Option<Arc<Tracer>>,
    ) -> Arc<Self> {
        let limits = Settings { calls_max: usize::MAX, ..settings.limits };
        let rpc = Arc::new(Self {
            shards: (0..SHARDS).map(|_| Shard::new(limits)).collect(),
            hasher: RandomState::new(),
            policies,
            deadlines: settings.deadlines.clone(),
            methods: Methods::new(&settings.labels),
            tracer,
            places: Places::new(settings.calls_max, settings.request_memory_max),
            params_bytes_max: settings.params_bytes_max,
            namespace: replicas.cluster().namespace("/"),
            replicas,
            lookup: settings.lookup,
            lookups: Mutex::default(),
            looking: Semaphore::new(lookup::LOOKS_MAX),
            taken: AtomicU64::new(0),
            started: Instant::now(),
        });
        (0..SHARDS).for_each(|index| shard::keep_time(&rpc, index));
        resume::serve(&rpc);
        request::trace(&rpc);
        rpc
    }

    /// What the layer knows a client by.
    #[must_use]
    pub fn party(&self, identity: &Identity) -> Party {
        let user = identity.user.clone();
        let (key, shard) = (pointwork_policy::user_key(&user), self.shard_of(&user));
        let client = pointwork_policy::user_key(&identity.client.to_string());
        Party { user, capabilities: identity.capabilities, client, key, shard }
    }

    #[expect(clippy::cast_possible_truncation, reason = "any bits of the hash will do")]
    fn shard_of(&self, user: &str) -> usize {
        self.hasher.hash_one(user) as usize % SHARDS
    }

    /// A socket of the party is connected.
    pub fn connect(self: &Arc<Self>, socket: &SocketRef, party: &Party) {
        let traits = Traits { local: true, resumable: party.capabilities.resume, ..Traits::default() };
        if party.capabilities.resume {
            socket.extensions.insert(Resumable(party.client));
        }
        self.drive_shard(party.shard, |shard, now| {
            shard.sockets.insert(socket_id(socket.id), Seat::Here(socket.clone()));
            shard.switchboard.handle_connect(socket_id(socket.id), party.user.clone(), 0, traits, now);
        });
    }

    /// A packet of the socket came in that is not the RPC layer's own.
    pub fn touch(self: &Arc<Self>, socket: &SocketRef, party: &Party) {
        self.drive_shard(party.shard, |shard, now| shard.switchboard.handle_packet(socket_id(socket.id), now));
    }

    /// `rpc-register`; `method` is `None` when the payload names none.
    pub fn register(self: &Arc<Self>, socket: &SocketRef, party: &Party, method: Option<String>) {
        let registered = method.map(|method| {
            let method: Arc<str> = method.into();
            let outcome = self.drive_shard(party.shard, |shard, now| {
                shard.switchboard.handle_register(socket_id(socket.id), method.clone(), now)
            });
            (method, outcome)
        });
        match registered {
            Some((method, Ok(()))) => {
                self.methods.registered(&method, || party.key);
                self.replicas.joined(socket_id(socket.id), &party.user, party.capabilities.resume, &method);
                socket.join(room::rpc(&party.user, &method));
                tell(socket, "rpc-registered", &serde_json::json!({ "method": &*method }));
            }
            Some((_, Err(error))) => refuse(socket, "register", error.message()),
            None => refuse(socket, "register", message::INVALID_METHOD),
        }
    }

    /// `rpc-unregister`; `method` is `None` when the payload names none.
    pub fn unregister(self: &Arc<Self>, socket: &SocketRef, party: &Party, method: Option<String>) {
        let unregistered = method.map(|method| {
            let method: Arc<str> = method.into();
            let outcome = self.drive_shard(party.shard, |shard, now| {
                shard.switchboard.handle_unregister(socket_id(socket.id), &method, now)
            });
            (method, outcome)
        });
        match unregistered {
            Some((method, Ok(()))) => {
                self.replicas.left(socket_id(socket.id), &method);
                socket.leave(room::rpc(&party.user, &method));
                tell(socket, "rpc-unregistered", &serde_json::json!({ "method": &*method }));
            }
            Some((_, Err(error))) => refuse(socket, "unregister", error.message()),
            None => refuse(socket, "unregister", message::INVALID_METHOD),
        }
    }

    /// `rpc-call {method, params}`, answered through `ack`.
    pub fn call(self: &Arc<Self>, socket: &SocketRef, party: &Party, incoming: Incoming, ack: AckSender) {
        let bytes = incoming.bytes;
        let Asked { method, params, timeout } = match Asked::of(incoming, self.params_bytes_max) {
            Ok(asked) => asked,
            Err(refusal) => return self.refuse(self.methods.other(), socket, ack, &refusal),
        };
        let label = self.methods.label(&method);
        let timeout = self.deadlines.of(&method, timeout);
        let memory_bytes = params.as_ref().map_or(0, memory_bytes);
        let method: Arc<str> = method.into();
        let wants_waiting = party.capabilities.waiting;
        let request = Request { caller: socket.clone(), ack, method: method.clone(), label, params, wants_waiting };
        let Some(place) = self.places.take(memory_bytes) else {
            return self.refuse(label, socket, request.ack, &CallRefused::TooManyCalls.into());
        };
        let span = self.tracer.as_ref().and_then(Tracer::call);
        let mut held = Some(Held::new(request, party.key, place, span));
        let refused = self.drive_shard(party.shard, |shard, now| {
            let call = shard.switchboard.handle_call(socket_id(socket.id), method, bytes, timeout, now)?;
            if let Some(held) = held.take() {
                shard.held.insert(call, held);
                self.taken.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, CallRefused>(())
        });
        if let (Err(refused), Some(held)) = (refused, held) {
            self.refuse(label, socket, held.into_ack(), &refused.into());
        }
    }

    /// Tells a caller why its call was not taken.
    fn refuse(&self, label: Label, caller: &SocketRef, ack: AckSender, refusal: &Refusal) {
        self.methods.ended(label, Ended::Refused);
        metrics::counter!("rpc_refused_total", "reason" => refusal.label()).increment(1);
        acknowledge(caller, ack, &Answer::error(refusal.to_string()));
    }

    /// Brings what the layer holds to the metrics.
    pub(crate) fn expose(&self, page: &mut Page) {
        self.methods.expose(page);
        self.places.publish();
    }

    /// The socket is gone. How long ago it was heard of.
    pub fn disconnect(self: &Arc<Self>, socket: &SocketRef, party: &Party, departure: Departure) -> Duration {
        let idle = self.drive_shard(party.shard, |shard, now| {
            let idle = shard.switchboard.directory().idle(socket_id(socket.id), now);
            shard.sockets.remove(&socket_id(socket.id));
            shard.switchboard.handle_disconnect(socket_id(socket.id), departure, now);
            idle.unwrap_or_default()
        });
        self.replicas.gone(socket_id(socket.id), departure);
        idle
    }

    /// The namespace of the clients, as the cluster sees it.
    pub(crate) fn namespace(&self) -> &Arc<Namespace> {
        &self.namespace
    }

    /// The other replicas.
    pub(crate) fn replicas(&self) -> &Replicas {
        &self.replicas
    }

    /// The machine's clock: since this layer was started.
    fn now(&self) -> Time {
        Time::from_micros(u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

/// `rpc-error {type, error}`.
fn refuse(socket: &SocketRef, what: &'static str, error: &str) {
    metrics::counter!("rpc_errors_total", "type" => what).increment(1);
    tell(socket, "rpc-error", &serde_json::json!({ "type": what, "error": error }));
}

/// A socket's id as the machines know it.
pub(crate) fn socket_id(sid: Sid) -> SocketId {
    let mut bytes = [0; 16];
    let text = sid.as_str().as_bytes();
    let len = text.len().min(bytes.len());
    bytes[..len].copy_from_slice(&text[..len]);
    SocketId(u128::from_be_bytes(bytes))
}
