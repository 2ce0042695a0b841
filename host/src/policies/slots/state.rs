//! Holds the policy of each slot, and reports which policies serve.

use std::sync::{Arc, OnceLock};

use pointwork_policy::{
    Breaker, Engine, Grace, Policy, Presence, Settle, Slot, SlotLimits, SlotName, SlotStatus, Target, Trip, TripHook,
};
use tokio::sync::broadcast;

use super::state_dir::SlotStateDir;
use crate::{
    config::{PolicyConfig, PolicySource, RpcConfig, SlotConfig},
    policies::{
        assignments::{Assignments, EndedCall},
        records::Records,
    },
    telemetry::{DECISION_NS, FixedHistogram},
};

/// Evaluates an expression with the policy of a slot.
macro_rules! with_policy {
    ($policies:expr, $slot:expr, |$policy:ident| $body:expr) => {
        match $slot {
            SlotName::Target => {
                let $policy = &$policies.target;
                $body
            }
            SlotName::Grace => {
                let $policy = &$policies.grace;
                $body
            }
            SlotName::Presence => {
                let $policy = &$policies.presence;
                $body
            }
            SlotName::Settle => {
                let $policy = &$policies.settle;
                $body
            }
        }
    };
}

pub(super) use with_policy;

/// The policy of each slot, and the constants of the native rules.
pub struct Policies {
    pub(super) target: Arc<Policy<Target>>,
    pub(super) grace: Arc<Policy<Grace>>,
    pub(super) presence: Arc<Policy<Presence>>,
    pub(super) settle: Arc<Policy<Settle>>,
    pub(super) trips: broadcast::Sender<Trip>,
    pub(super) records: OnceLock<Arc<Records>>,
    /// In the order of [`SlotName::ALL`]; `None` without `policy.state_dir`.
    pub(super) state_dirs: Option<[SlotStateDir; 4]>,
    pub(super) assignments: Assignments,
    /// How long guests took in each slot, in the order of [`SlotName::ALL`].
    pub(super) costs: [FixedHistogram; SlotName::ALL.len()],
    pub(super) grace_ms: u32,
    pub(super) recheck_ms: u32,
}

/// The most trips that wait for a listener; a slow listener misses the oldest ones.
const TRIPS_WAITING_MAX: usize = 64;

impl Policies {
    /// Slots in which the native rules serve until a policy is loaded.
    ///
    /// # Errors
    /// When the wasm engine cannot start on this machine, or `policy.state_dir` cannot be opened.
    pub fn new(settings: &PolicyConfig, rpc: &RpcConfig) -> anyhow::Result<Self> {
        let engine = Engine::new()?;
        let (trips, _) = broadcast::channel(TRIPS_WAITING_MAX);
        let sender = trips.clone();
        // An error means that nobody listens.
        let hook: TripHook = Arc::new(move |trip| drop(sender.send(trip.clone())));
        let policies = Self {
            target: policy(&engine, settings, &settings.target, &hook),
            grace: policy(&engine, settings, &settings.grace, &hook),
            presence: policy(&engine, settings, &settings.presence, &hook),
            settle: policy(&engine, settings, &settings.settle, &hook),
            trips,
            records: OnceLock::new(),
            state_dirs: open_state_dirs(settings)?,
            assignments: Assignments::default(),
            costs: SlotName::ALL.map(|_| FixedHistogram::new(&DECISION_NS)),
            grace_ms: rpc.grace_ms.get(),
            recheck_ms: rpc.presence_poll_ms.get(),
        };
        policies.restore_quarantine();
        Ok(policies)
    }

    /// Records every decision from now on. A second call does nothing.
    pub fn record_to(&self, records: Arc<Records>) {
        let _ = self.records.set(records);
    }

    /// The experiment that runs in each slot.
    pub(crate) fn assignments(&self) -> &Assignments {
        &self.assignments
    }

    /// Notes how a call of the user that `key` stands for ended.
    pub(crate) fn call_ended(&self, key: u64, call: &EndedCall) {
        self.assignments.call_ended(key, call);
    }

    /// Receives the trips of slots and arms from now on.
    pub fn trips(&self) -> broadcast::Receiver<Trip> {
        self.trips.subscribe()
    }

    /// The status of each slot.
    pub fn status(&self) -> [SlotStatus; 4] {
        [self.target.status(), self.grace.status(), self.presence.status(), self.settle.status()]
    }
}

fn policy<S: Slot>(engine: &Engine, settings: &PolicyConfig, slot: &SlotConfig, hook: &TripHook) -> Arc<Policy<S>> {
    let breaker = Breaker {
        failures_max: settings.breaker_failures.as_usize(),
        window_ms: settings.breaker_window_ms.get().into(),
    };
    Arc::new(Policy::new(engine, limits(slot)).with_breaker(breaker).with_hook(hook.clone()))
}

fn open_state_dirs(settings: &PolicyConfig) -> anyhow::Result<Option<[SlotStateDir; 4]>> {
    // In a cluster, Redis holds the last good generations and the quarantine.
    let is_cluster = settings.source == PolicySource::Cluster;
    let Some(dir) = settings.state_dir.as_ref().filter(|_| !is_cluster) else { return Ok(None) };
    let [target, grace, presence, settle] = SlotName::ALL.map(|slot| SlotStateDir::open(dir, slot));
    Ok(Some([target?, grace?, presence?, settle?]))
}

fn limits(settings: &SlotConfig) -> SlotLimits {
    SlotLimits {
        deadline_ms: settings.deadline_ms.get().into(),
        memory_mib: settings.memory_mib.get(),
        ..SlotLimits::default()
    }
}
