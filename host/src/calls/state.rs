//! The calls of this replica: its shards, and what every call needs.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use parking_lot::Mutex;
use pointwork_core::{CallSettings, RpcRoom};
use socketioxide_redis_streams::Namespace;
use tokio::sync::Semaphore;

use super::{
    action::GraceQuestion,
    call::{budget::CallBudget, deadlines::Deadlines},
    shard::Shard,
};
use crate::{
    cluster::Replicas,
    driver::Driver,
    edge::identity::{Capabilities, Identity},
    policies::slots::Policies,
    telemetry::{MethodLabels, MethodMetrics, MetricsPage, Tracer},
};

/// The number of shards: enough that two cores seldom need the same one.
pub(super) const SHARDS: usize = 32;

/// The settings of the calls.
#[derive(Debug, Clone)]
pub struct CallsConfig {
    /// How long a daemon may take to answer a request.
    pub deadlines: Deadlines,
    /// How many calls may be open at once, in all shards together.
    pub calls_max: usize,
    /// How much memory the parameters of all open calls may take, in bytes.
    pub request_memory_max: usize,
    /// How large one call may be on the wire, in bytes.
    pub params_bytes_max: usize,
    /// How Node servers are asked for daemons.
    pub lookup: LookupSettings,
    /// Which methods have a label of their own in the metrics.
    pub labels: MethodLabels,
    /// The bounds of each shard. `calls_max` is not used: users are not spread evenly over the shards.
    pub limits: CallSettings,
}

/// Cadences of lookups.
#[derive(Debug, Clone, Copy)]
pub struct LookupSettings {
    /// How long a look may take.
    pub timeout: Duration,
    /// Between two looks while a call waits.
    pub while_waiting: Duration,
    /// Between two looks while a call is in flight.
    pub while_in_flight: Duration,
}

/// The methods that are looked for at Node servers, each with the questions that wait for the lookup under way.
pub(super) type Lookups = Mutex<HashMap<RpcRoom, Vec<GraceQuestion>>>;

/// A client as the calls know it, computed once for each connection.
pub struct Participant {
    pub(super) user: Arc<str>,
    pub(super) capabilities: Capabilities,
    /// Stands for what the client is within its user.
    pub(super) client: u64,
    /// Stands for the user in a policy's input.
    pub(super) key: u64,
    pub(super) shard: usize,
}

/// The calls of this replica.
pub struct Calls {
    pub(super) shards: Box<[Driver<Shard>]>,
    pub(super) hasher: RandomState,
    pub(super) policies: Arc<Policies>,
    pub(super) deadlines: Deadlines,
    pub(super) methods: MethodMetrics,
    /// Nothing without a collector.
    pub(super) tracer: Option<Arc<Tracer>>,
    pub(super) places: CallBudget,
    pub(super) params_bytes_max: usize,
    pub(super) replicas: Arc<Replicas>,
    pub(super) namespace: Arc<Namespace>,
    pub(super) lookup: LookupSettings,
    pub(super) lookups: Lookups,
    /// Turns of lookups.
    pub(super) looking: Semaphore,
    pub(super) taken: AtomicU64,
}

impl Calls {
    /// The client as the calls know it.
    #[must_use]
    pub fn participant(&self, identity: &Identity) -> Participant {
        let user = identity.user.clone();
        let (key, shard) = (pointwork_policy::user_key(&user), self.shard_of(&user));
        let client = pointwork_policy::user_key(&identity.client.to_string());
        Participant { user, capabilities: identity.capabilities, client, key, shard }
    }

    #[expect(clippy::cast_possible_truncation, reason = "any bits of the hash will do")]
    pub(super) fn shard_of(&self, user: &str) -> usize {
        self.hasher.hash_one(user) as usize % SHARDS
    }

    /// Writes the counts of calls to the metrics.
    pub(crate) fn expose(&self, page: &mut MetricsPage) {
        self.methods.expose(page);
        self.places.publish();
    }

    /// The namespace of the clients, as the cluster sees it.
    pub(crate) fn namespace(&self) -> &Arc<Namespace> {
        &self.namespace
    }

    /// The other replicas.
    pub(crate) fn replicas(&self) -> &Replicas {
        &self.replicas
    }
}
