//! The four slots: asks the policy that serves, and has the native rule answer when it cannot.

mod arms;
mod change;
mod last_good;
mod state_dir;

pub(crate) use arms::{DeviceInArm, Settled, Source, engine_slot};
pub use change::{NotRetried, PreparedPolicy};

use std::sync::Arc;

use pointwork_contract as contract;
use pointwork_core::{
    decision::{Absence, Call, Candidate, Choice, Doubt, Event, Incumbent, Newcomer, SettleVerdict, Verdict},
    rules,
};
use pointwork_policy::{
    Breaker, Engine, Grace, Policy, Presence, Settle, Slot, SlotLimits, SlotName, SlotStatus, Target, Trip, TripHook,
};
use tokio::sync::broadcast;

use self::state_dir::StateDir;
use crate::{
    config::{PolicyConfig, PolicySource, RpcConfig, SlotConfig},
    driver::clock::unix_ms,
    policies::{
        assignments::Assignments,
        records::{Recorder, Records},
    },
    telemetry::{DECISION_NS, FixedHistogram, MetricsPage},
};

/// What serves each slot, and the constants of the native rules.
pub struct Policies {
    target: Arc<Policy<Target>>,
    grace: Arc<Policy<Grace>>,
    presence: Arc<Policy<Presence>>,
    settle: Arc<Policy<Settle>>,
    trips: broadcast::Sender<Trip>,
    recorder: Recorder,
    /// In the order of [`SlotName::ALL`]; without `policy.state_dir` there are none.
    state: Option<[StateDir; 4]>,
    assignments: Assignments,
    /// How long guests took, in the order of [`SlotName::ALL`].
    costs: [FixedHistogram; SlotName::ALL.len()],
    grace_ms: u32,
    recheck_ms: u32,
}

/// The metric of what a guest takes.
const COST: &str = "pointwork_policy_decision_seconds";
/// Trips that wait for whoever is told of them; a slow listener misses the oldest.
const TRIPS_WAITING_MAX: usize = 64;

impl Policies {
    /// Slots in which the native rules serve, until a policy is loaded.
    ///
    /// # Errors
    /// When the wasm engine cannot start on this machine, or `policy.state_dir` cannot be had.
    pub fn new(settings: &PolicyConfig, rpc: &RpcConfig) -> anyhow::Result<Self> {
        let engine = Engine::new()?;
        let (trips, _) = broadcast::channel(TRIPS_WAITING_MAX);
        let told = trips.clone();
        // Nobody listens: then nobody wants to know.
        let hook: TripHook = Arc::new(move |trip| drop(told.send(trip.clone())));
        let policies = Self {
            target: policy(&engine, settings, &settings.target, &hook),
            grace: policy(&engine, settings, &settings.grace, &hook),
            presence: policy(&engine, settings, &settings.presence, &hook),
            settle: policy(&engine, settings, &settings.settle, &hook),
            trips,
            recorder: Recorder::default(),
            state: open_state(settings)?,
            assignments: Assignments::default(),
            costs: SlotName::ALL.map(|_| FixedHistogram::new(&DECISION_NS)),
            grace_ms: rpc.grace_ms.get(),
            recheck_ms: rpc.presence_poll_ms.get(),
        };
        policies.restore_quarantine();
        Ok(policies)
    }

    /// Records every decision from here on; only the first recorder counts.
    pub fn record_to(&self, records: Arc<Records>) {
        self.recorder.set(records);
    }

    /// Which candidate gets the call. `key` stands for the user, see [`pointwork_policy::user_key`].
    pub fn choose(&self, key: u64, call: &Call, candidates: &[Candidate]) -> Choice {
        let question = contract::target_question(moment(key), call, candidates);
        let native = || contract::target_to_contract(rules::target(candidates));
        contract::target_to_core(self.decide_for_user::<Target>(key, question, native))
    }

    /// For how many milliseconds a call is held that found nobody.
    pub fn wait(&self, key: u64, call: &Call, absence: &Absence) -> u32 {
        let question = contract::grace_question(moment(key), call, absence);
        self.decide_for_user::<Grace>(key, question, || rules::grace(absence, self.grace_ms))
    }

    /// Whether a call whose target is in doubt goes on waiting.
    pub fn judge(&self, key: u64, call: &Call, doubt: &Doubt) -> Verdict {
        let question = contract::presence_question(moment(key), call, doubt);
        let native = || contract::presence_to_contract(rules::presence(doubt, self.recheck_ms, self.grace_ms));
        contract::presence_to_core(self.decide_for_user::<Presence>(key, question, native))
    }

    /// Which of two sockets holds a device's session, by what serves. `key` stands for the device; `history` is newest first.
    pub fn settle(
        &self,
        key: u64,
        window_ms: u32,
        incumbent: &Incumbent,
        newcomer: &Newcomer,
        history: &[Event],
    ) -> SettleVerdict {
        let question = contract::settle_question(moment(key), window_ms, incumbent, newcomer, history);
        let native = || contract::settle_to_contract(rules::settle(window_ms, incumbent));
        contract::settle_to_core(self.decide::<Settle>(None, None, question, native).verdict)
    }

    /// Trips of slots and arms from now on.
    pub fn trips(&self) -> broadcast::Receiver<Trip> {
        self.trips.subscribe()
    }

    /// Brings the slots' own counters to the metrics: nothing is paid for them in a decision. `is_refused`: what is not loaded by the slot
    /// itself came to nothing, see [`Rollouts::is_refused`](crate::policies::rollout::Rollouts::is_refused).
    pub(crate) fn expose(&self, page: &mut MetricsPage, is_refused: impl Fn(SlotName) -> bool) {
        let status = self.status();
        expose_info(page, &status);
        page.begin(COST);
        for (slot, costs) in SlotName::ALL.iter().zip(&self.costs) {
            page.histogram(COST, &[("slot", slot.as_str())], costs, 1e-9);
        }
        for status in status {
            let slot = status.slot.as_str();
            let by =
                |by: &'static str| metrics::counter!("pointwork_policy_decisions_total", "slot" => slot, "by" => by);
            by("wasm").absolute(status.calls - status.native.min(status.calls));
            by("native").absolute(status.native);
            for (kind, count) in status.failures {
                metrics::counter!("pointwork_policy_failures_total", "slot" => slot, "kind" => kind).absolute(count);
            }
            metrics::counter!("pointwork_policy_trips_total", "slot" => slot).absolute(status.trips);
            metrics::gauge!("pointwork_policy_generation", "slot" => slot).set(status.generation as f64);
            metrics::gauge!("pointwork_policy_loaded", "slot" => slot)
                .set(f64::from(u8::from(status.source == "wasm")));
            let has_failed = status.last_load_error.is_some() || is_refused(status.slot);
            metrics::gauge!("pointwork_policy_load_failed", "slot" => slot).set(f64::from(u8::from(has_failed)));
            metrics::gauge!("pointwork_policy_live_generations", "slot" => slot).set(status.live_generations as f64);
            metrics::gauge!("pointwork_policy_quarantined", "slot" => slot).set(status.quarantined.len() as f64);
        }
    }

    /// What serves each slot, and how it does.
    pub fn status(&self) -> [SlotStatus; 4] {
        [self.target.status(), self.grace.status(), self.presence.status(), self.settle.status()]
    }
}

/// What serves each slot, and nothing of what served before.
fn expose_info(page: &mut MetricsPage, status: &[SlotStatus]) {
    const INFO: &str = "pointwork_policy_info";
    page.begin(INFO);
    for SlotStatus { slot, info, digest, source, .. } in status {
        let digest = digest.map_or_else(|| "native".to_owned(), |digest| digest.short());
        let (name, version) = match info {
            Some(info) => (info.name.as_str(), info.version.as_str()),
            None => ("native", ""),
        };
        let what = [("slot", slot.as_str()), ("name", name), ("version", version)];
        let from = [("digest", digest.as_str()), ("source", *source)];
        page.sample(INFO, &[&what[..], &from[..]].concat(), 1.0);
    }
}

fn policy<S: Slot>(engine: &Engine, settings: &PolicyConfig, slot: &SlotConfig, hook: &TripHook) -> Arc<Policy<S>> {
    let breaker = Breaker {
        failures_max: settings.breaker_failures.as_usize(),
        window_ms: settings.breaker_window_ms.get().into(),
    };
    Arc::new(Policy::new(engine, limits(slot)).with_breaker(breaker).with_hook(hook.clone()))
}

fn open_state(settings: &PolicyConfig) -> anyhow::Result<Option<[StateDir; 4]>> {
    // The pointers of a cluster say what was good, and what is in quarantine.
    let is_cluster = settings.source == PolicySource::Cluster;
    let Some(dir) = settings.state_dir.as_ref().filter(|_| !is_cluster) else { return Ok(None) };
    let [target, grace, presence, settle] = SlotName::ALL.map(|slot| StateDir::open(dir, slot));
    Ok(Some([target?, grace?, presence?, settle?]))
}

fn limits(settings: &SlotConfig) -> SlotLimits {
    SlotLimits {
        deadline_ms: settings.deadline_ms.get().into(),
        memory_mib: settings.memory_mib.get(),
        ..SlotLimits::default()
    }
}

fn moment(key: u64) -> pointwork_policy::contract::Moment {
    pointwork_policy::contract::Moment { now_ms: unix_ms(), seed: fastrand::u64(..), key }
}
