//! The four slots: asks the policy that serves, and has the native rule answer when it cannot.

mod contract;

use pointwork_core::{
    decision::{Absence, Call, Candidate, Choice, Doubt, Event, Incumbent, Newcomer, SettleVerdict, Verdict},
    rules,
};
use pointwork_policy::{
    Engine, Grace, LoadError, LoadReport, Policy, Presence, Settle, SlotLimits, SlotName, SlotStatus, Target,
};

use crate::{
    clock::unix_ms,
    config::{PolicyConfig, RpcConfig, SlotConfig},
};

/// What serves each slot, and the constants of the native rules.
pub struct Policies {
    target: Policy<Target>,
    grace: Policy<Grace>,
    presence: Policy<Presence>,
    settle: Policy<Settle>,
    grace_ms: u32,
    recheck_ms: u32,
}

impl Policies {
    /// Slots in which the native rules serve, until a policy is loaded.
    ///
    /// # Errors
    /// When the wasm engine cannot start on this machine.
    pub fn new(settings: &PolicyConfig, rpc: &RpcConfig) -> anyhow::Result<Self> {
        let engine = Engine::new()?;
        Ok(Self {
            target: Policy::new(&engine, limits(&settings.target)),
            grace: Policy::new(&engine, limits(&settings.grace)),
            presence: Policy::new(&engine, limits(&settings.presence)),
            settle: Policy::new(&engine, limits(&settings.settle)),
            grace_ms: rpc.grace_ms.get(),
            recheck_ms: rpc.presence_poll_ms.get(),
        })
    }

    /// Which candidate gets the call. `key` stands for the user, see [`pointwork_policy::user_key`].
    pub fn choose(&self, key: u64, call: &Call, candidates: &[Candidate]) -> Choice {
        let question = contract::target_question(moment(key), call, candidates);
        let decision = self.target.decide(&question, || contract::from_choice(rules::target(candidates)));
        contract::to_choice(decision.verdict)
    }

    /// For how many milliseconds a call is held that found nobody.
    pub fn wait(&self, key: u64, call: &Call, absence: &Absence) -> u32 {
        let question = contract::grace_question(moment(key), call, absence);
        self.grace.decide(&question, || rules::grace(absence, self.grace_ms)).verdict
    }

    /// Whether a call whose target is in doubt goes on waiting.
    pub fn judge(&self, key: u64, call: &Call, doubt: &Doubt) -> Verdict {
        let question = contract::presence_question(moment(key), call, doubt);
        let native = || contract::from_verdict(rules::presence(doubt, self.recheck_ms, self.grace_ms));
        contract::to_verdict(self.presence.decide(&question, native).verdict)
    }

    /// Which of two sockets holds a device's session. `key` stands for the device; `history` is newest first.
    pub fn settle(
        &self,
        key: u64,
        window_ms: u32,
        incumbent: &Incumbent,
        newcomer: &Newcomer,
        history: &[Event],
    ) -> SettleVerdict {
        let question = contract::settle_question(moment(key), window_ms, incumbent, newcomer, history);
        let native = || contract::from_settle(rules::settle(window_ms, incumbent));
        contract::to_settle(self.settle.decide(&question, native).verdict)
    }

    /// Loads a module with its configuration into a slot. A failure leaves what serves serving; it is logged, counted and
    /// shown in the slot's status.
    pub fn load(&self, slot: SlotName, module: &[u8], config: &str) {
        let loaded = match slot {
            SlotName::Target => self.target.load(module, config),
            SlotName::Grace => self.grace.load(module, config),
            SlotName::Presence => self.presence.load(module, config),
            SlotName::Settle => self.settle.load(module, config),
        };
        match loaded {
            Ok(LoadReport { changed: false, .. }) => {}
            Ok(LoadReport { generation, digest, info, .. }) => {
                metrics::counter!("pointwork_policy_loads_total", "slot" => slot.as_str(), "result" => "ok")
                    .increment(1);
                tracing::info!(%slot, generation, %digest, name = info.name, version = info.version, "policy swapped in");
            }
            Err(error) => refused(slot, &error),
        }
    }

    /// Goes back to the native rule.
    pub fn unload(&self, slot: SlotName) {
        match slot {
            SlotName::Target => self.target.unload(),
            SlotName::Grace => self.grace.unload(),
            SlotName::Presence => self.presence.unload(),
            SlotName::Settle => self.settle.unload(),
        }
        tracing::info!(%slot, "no policy: the native rule serves");
    }

    /// Records that a slot's files are there but could not be read; what serves goes on serving.
    pub fn note_unreadable(&self, slot: SlotName, message: &str) {
        let error = match slot {
            SlotName::Target => self.target.note_unreadable(message),
            SlotName::Grace => self.grace.note_unreadable(message),
            SlotName::Presence => self.presence.note_unreadable(message),
            SlotName::Settle => self.settle.note_unreadable(message),
        };
        refused(slot, &error);
    }

    /// Brings the slots' own counters to the metrics: nothing is paid for them in a decision.
    pub fn publish(&self) {
        for status in self.status() {
            let slot = status.slot.as_str();
            let by =
                |by: &'static str| metrics::counter!("pointwork_policy_decisions_total", "slot" => slot, "by" => by);
            by("wasm").absolute(status.calls - status.native.min(status.calls));
            by("native").absolute(status.native);
            for (kind, count) in status.failures {
                metrics::counter!("pointwork_policy_failures_total", "slot" => slot, "kind" => kind).absolute(count);
            }
            metrics::gauge!("pointwork_policy_generation", "slot" => slot).set(status.generation as f64);
            metrics::gauge!("pointwork_policy_loaded", "slot" => slot)
                .set(f64::from(u8::from(status.source == "wasm")));
        }
    }

    /// What serves each slot, and how it does.
    pub fn status(&self) -> [SlotStatus; 4] {
        [self.target.status(), self.grace.status(), self.presence.status(), self.settle.status()]
    }
}

fn refused(slot: SlotName, error: &LoadError) {
    metrics::counter!("pointwork_policy_loads_total", "slot" => slot.as_str(), "result" => error.kind()).increment(1);
    tracing::warn!(%slot, kind = error.kind(), %error, "policy not loaded: what served before, or the native rule, serves");
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
