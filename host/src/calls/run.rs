//! Starts the calls of a replica, with their timers and with what they do for other replicas.

use std::{
    hash::RandomState,
    sync::{Arc, atomic::AtomicU64},
};

use pointwork_core::CallSettings;
use tokio::sync::Semaphore;

use super::{
    call::budget::CallBudget,
    daemon_requests,
    daemons::{announced, late_results, node_lookup::LOOKS_MAX},
    shard,
    state::{Calls, CallsConfig, Lookups, SHARDS},
};
use crate::{
    cluster::Replicas,
    driver::{Clock, keep_time},
    policies::slots::Policies,
    telemetry::{MethodMetrics, Tracer},
};

impl Calls {
    /// Starts the calls and their timers, which run for as long as the current runtime.
    #[must_use]
    pub fn start(
        settings: &CallsConfig,
        policies: Arc<Policies>,
        replicas: Arc<Replicas>,
        tracer: Option<Arc<Tracer>>,
    ) -> Arc<Self> {
        let limits = CallSettings { calls_max: usize::MAX, ..settings.limits };
        let clock = Clock::start();
        let calls = Arc::new(Self {
            shards: (0..SHARDS).map(|_| shard::new(limits, clock)).collect(),
            hasher: RandomState::new(),
            policies,
            deadlines: settings.deadlines.clone(),
            methods: MethodMetrics::new(&settings.labels),
            tracer,
            places: CallBudget::new(settings.calls_max, settings.request_memory_max),
            params_bytes_max: settings.params_bytes_max,
            namespace: replicas.cluster().namespace("/"),
            replicas,
            lookup: settings.lookup,
            lookups: Lookups::default(),
            looking: Semaphore::new(LOOKS_MAX),
            taken: AtomicU64::new(0),
        });
        for index in 0..SHARDS {
            let timed_out = move |calls: &Arc<Self>| {
                calls.drive_shard(index, |shard, now| shard.machine.handle_timeout(now));
            };
            keep_time(&calls, move |calls: &Self| &calls.shards[index], timed_out);
        }
        announced::subscribe(&calls);
        late_results::serve(&calls);
        daemon_requests::trace(&calls);
        calls
    }
}
