//! Loads one of the two rules, a policy or the native rule, and answers the questions of the simulated worlds with it.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context, ensure};
use pointwork_contract as contract;
use pointwork_core::decisions::rules;
use pointwork_core::decisions::{Absence, Call, Candidate, Choice, Doubt, SettleVerdict, Verdict};
use pointwork_policy::{
    Breaker, By, Decision, Digest, Engine, FailureKind, Grace, Policy, Presence, Settle, Slot, SlotLimits, SlotName,
    Target, contract::Moment, device_key, user_key,
};
use pointwork_simulation::{Native, RuleMoment, Rules, SettleQuestion, SettleRules};
use serde::Serialize;

use crate::offline_policy::read_config;

/// The deadline of a policy, in milliseconds. It is long, because a simulation is about the verdicts and not about their speed.
const DEADLINE_MS: u64 = 500;
/// A policy that exceeds its deadline so often is not asked any more, because the simulation would take too long.
const DEADLINES_MAX: u64 = 5;

/// A rule, with counts of its answers and failures.
pub(super) struct LoadedRule {
    slot: SlotName,
    policy: SlotPolicy,
    /// The name of the rule.
    pub(super) info: RuleInfo,
    questions: AtomicU64,
    failures: [AtomicU64; FailureKind::ALL.len()],
}

/// The policy of the slot, or none if the native rule is played.
enum SlotPolicy {
    Native,
    Target(Box<Policy<Target>>),
    Grace(Box<Policy<Grace>>),
    Presence(Box<Policy<Presence>>),
    Settle(Box<Policy<Settle>>),
}

/// The name of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct RuleInfo {
    /// The policy's name, or `native`.
    pub(super) name: String,
    /// The policy's version.
    pub(super) version: Option<String>,
    /// Digest of its generation.
    pub(super) digest: Option<Digest>,
}

impl LoadedRule {
    /// Loads the rule for a slot: `native`, or the policy in `file`. For `config` see [`read_config`].
    ///
    /// # Errors
    /// When a file cannot be read, or the policy is refused.
    pub(super) fn load(engine: &Engine, slot: SlotName, file: &Path, config: Option<&Path>) -> anyhow::Result<Self> {
        let native = RuleInfo { name: "native".to_owned(), version: None, digest: None };
        if file == Path::new("native") {
            ensure!(config.is_none(), "the native rule has no configuration");
            return Ok(Self::new(slot, SlotPolicy::Native, native));
        }
        let name = || file.display().to_string();
        let module = fs::read(file).with_context(name)?;
        let config = read_config(file, config)?.to_json();
        let (policy, info) = match slot {
            SlotName::Target => load(engine, &module, &config, SlotPolicy::Target),
            SlotName::Grace => load(engine, &module, &config, SlotPolicy::Grace),
            SlotName::Presence => load(engine, &module, &config, SlotPolicy::Presence),
            SlotName::Settle => load(engine, &module, &config, SlotPolicy::Settle),
        }
        .with_context(name)?;
        Ok(Self::new(slot, policy, info))
    }

    fn new(slot: SlotName, policy: SlotPolicy, info: RuleInfo) -> Self {
        Self { slot, policy, info, questions: AtomicU64::new(0), failures: Default::default() }
    }

    /// How often the rule was asked.
    pub(super) fn questions(&self) -> u64 {
        self.questions.load(Ordering::Relaxed)
    }

    /// How often the policy failed and the native rule answered, by kind of failure. Kinds that did not occur are left out.
    pub(super) fn failures(&self) -> BTreeMap<&'static str, u64> {
        let counts = FailureKind::ALL.into_iter().zip(&self.failures);
        let counts = counts.map(|(kind, count)| (kind.as_str(), count.load(Ordering::Relaxed)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Whether the policy exceeded its deadline so often that it is not asked any more.
    pub(super) fn is_too_slow(&self) -> bool {
        self.failures[FailureKind::Deadline as usize].load(Ordering::Relaxed) >= DEADLINES_MAX
    }

    /// Asks the policy. `native` answers if the policy fails or is too slow, so that the world comes to its end.
    fn ask<S: Slot>(
        &self,
        policy: &Policy<S>,
        question: &S::Question,
        native: impl FnOnce() -> S::Verdict,
    ) -> S::Verdict {
        if self.is_too_slow() {
            return native();
        }
        let Decision { verdict, by, .. } = policy.decide(question, native);
        if let By::Native { reason: Some(kind) } = by {
            self.failures[kind as usize].fetch_add(1, Ordering::Relaxed);
        }
        verdict
    }

    /// Counts a question if it is of the slot that the simulation is about.
    fn count(&self, slot: SlotName) {
        self.questions.fetch_add(u64::from(slot == self.slot), Ordering::Relaxed);
    }
}

fn load<S: Slot>(
    engine: &Engine,
    module: &[u8],
    config: &str,
    wrap: fn(Box<Policy<S>>) -> SlotPolicy,
) -> anyhow::Result<(SlotPolicy, RuleInfo)> {
    let limits = SlotLimits { deadline_ms: DEADLINE_MS, ..SlotLimits::default() };
    // The breaker never trips: the policy is asked again however often it fails.
    let breaker = Breaker { failures_max: usize::MAX, window_ms: 0 };
    let policy = Policy::<S>::new(engine, limits).with_breaker(breaker);
    let report = policy.load(module, config)?;
    let info = RuleInfo { name: report.info.name, version: Some(report.info.version), digest: Some(report.digest) };
    Ok((wrap(Box::new(policy)), info))
}

impl SettleRules for LoadedRule {
    fn settle(&self, asked: &SettleQuestion<'_>) -> SettleVerdict {
        self.count(SlotName::Settle);
        let native = || rules::settle(asked.window_ms, asked.incumbent);
        let SlotPolicy::Settle(policy) = &self.policy else { return native() };
        let at = Moment { now_ms: asked.now_ms, seed: asked.seed, key: device_key(asked.device) };
        let question = contract::settle_question(at, asked.window_ms, asked.incumbent, asked.newcomer, asked.history);
        contract::settle_to_core(self.ask(policy, &question, || contract::settle_to_contract(native())))
    }
}

/// The policy answers for its slot, and the native rules for the others.
impl Rules for LoadedRule {
    fn choose(&self, at: RuleMoment, user: &str, call: &Call, candidates: &[Candidate]) -> Choice {
        self.count(SlotName::Target);
        let native = || Native::default().choose(at, user, call, candidates);
        let SlotPolicy::Target(policy) = &self.policy else { return native() };
        let question = contract::target_question(moment(at, user), call, candidates);
        contract::target_to_core(self.ask(policy, &question, || contract::target_to_contract(native())))
    }

    fn wait(&self, at: RuleMoment, user: &str, call: &Call, absence: &Absence) -> u32 {
        self.count(SlotName::Grace);
        let native = || Native::default().wait(at, user, call, absence);
        let SlotPolicy::Grace(policy) = &self.policy else { return native() };
        let question = contract::grace_question(moment(at, user), call, absence);
        self.ask(policy, &question, native)
    }

    fn judge(&self, at: RuleMoment, user: &str, call: &Call, doubt: &Doubt) -> Verdict {
        self.count(SlotName::Presence);
        let native = || Native::default().judge(at, user, call, doubt);
        let SlotPolicy::Presence(policy) = &self.policy else { return native() };
        let question = contract::presence_question(moment(at, user), call, doubt);
        contract::presence_to_core(self.ask(policy, &question, || contract::presence_to_contract(native())))
    }

    fn resume_ms(&self) -> Option<u32> {
        // Whether a policy keeps that promise is not known.
        if matches!(self.policy, SlotPolicy::Presence(_)) { None } else { Native::default().resume_ms() }
    }

    fn trusts_silence(&self) -> bool {
        matches!(self.policy, SlotPolicy::Presence(_))
    }
}

fn moment(at: RuleMoment, user: &str) -> Moment {
    Moment { now_ms: at.now_ms, seed: at.seed, key: user_key(user) }
}
