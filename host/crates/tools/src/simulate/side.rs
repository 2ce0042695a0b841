//! One of the two rules: a policy in the engine, or the native rule.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use pointwork_core::decision::{Absence, Call, Candidate, Choice, Doubt, SettleVerdict, Verdict};
use pointwork_core::rules;
use pointwork_policy::contract::Moment;
use pointwork_policy::{
    Breaker, By, Decision, Digest, Engine, FailureKind, Grace, Policy, Presence, Settle, Slot, SlotLimits, SlotName,
    Target, device_key, user_key,
};
use pointwork_simulation::{Native, RuleMoment, Rules, SettleQuestion, SettleRules};
use serde::Serialize;

use crate::policy_file::config_of;
use pointwork_contract as contract;

/// A policy's deadline, in milliseconds: what counts here is what it says.
const DEADLINE_MS: u64 = 500;
/// A policy that runs over it so often is not played on: it would take for ever.
const DEADLINES_MAX: u64 = 5;

/// A rule, and how it did as a policy.
pub(super) struct Side {
    slot: SlotName,
    serving: Serving,
    /// What it says of itself.
    pub(super) info: Info,
    questions: AtomicU64,
    failures: [AtomicU64; FailureKind::ALL.len()],
}

enum Serving {
    Native,
    Target(Box<Policy<Target>>),
    Grace(Box<Policy<Grace>>),
    Presence(Box<Policy<Presence>>),
    Settle(Box<Policy<Settle>>),
}

/// Who a rule is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Info {
    /// The policy's name, or `native`.
    pub(super) name: String,
    /// The policy's version.
    pub(super) version: Option<String>,
    /// Digest of its generation.
    pub(super) digest: Option<Digest>,
}

impl Side {
    /// Loads the rule for a slot: a policy's file with a configuration (without one, that beside it), or `native`.
    ///
    /// # Errors
    /// When a file cannot be read, or the policy is refused.
    pub(super) fn load(engine: &Engine, slot: SlotName, file: &Path, config: Option<&Path>) -> anyhow::Result<Side> {
        let native = Info { name: "native".to_owned(), version: None, digest: None };
        if file == Path::new("native") {
            anyhow::ensure!(config.is_none(), "the native rule has no configuration");
            return Ok(Side::new(slot, Serving::Native, native));
        }
        let named = || file.display().to_string();
        let module = fs::read(file).with_context(named)?;
        let config = config_of(file, config)?.to_json();
        let (serving, info) = match slot {
            SlotName::Target => load(engine, &module, &config, Serving::Target),
            SlotName::Grace => load(engine, &module, &config, Serving::Grace),
            SlotName::Presence => load(engine, &module, &config, Serving::Presence),
            SlotName::Settle => load(engine, &module, &config, Serving::Settle),
        }
        .with_context(named)?;
        Ok(Side::new(slot, serving, info))
    }

    fn new(slot: SlotName, serving: Serving, info: Info) -> Side {
        Side { slot, serving, info, questions: AtomicU64::new(0), failures: Default::default() }
    }

    /// How often it was asked.
    pub(super) fn questions(&self) -> u64 {
        self.questions.load(Ordering::Relaxed)
    }

    /// How often it failed and the native rule answered, by kind; those that never occurred are left out.
    pub(super) fn failures(&self) -> BTreeMap<&'static str, u64> {
        let counts = FailureKind::ALL.into_iter().zip(&self.failures);
        let counts = counts.map(|(kind, count)| (kind.as_str(), count.load(Ordering::Relaxed)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// That it is not worth while to go on.
    pub(super) fn is_hopeless(&self) -> bool {
        self.failures[FailureKind::Deadline as usize].load(Ordering::Relaxed) >= DEADLINES_MAX
    }

    /// Asks the policy; `native` answers if it fails. One that is hopeless is not asked any more: the world is to come to its end.
    fn ask<S: Slot>(
        &self,
        policy: &Policy<S>,
        question: &S::Question,
        native: impl FnOnce() -> S::Verdict,
    ) -> S::Verdict {
        if self.is_hopeless() {
            return native();
        }
        let Decision { verdict, by, .. } = policy.decide(question, native);
        if let By::Native { reason: Some(kind) } = by {
            self.failures[kind as usize].fetch_add(1, Ordering::Relaxed);
        }
        verdict
    }

    /// A slot is asked; those beside the one that it is about do not count.
    fn count(&self, slot: SlotName) {
        self.questions.fetch_add(u64::from(slot == self.slot), Ordering::Relaxed);
    }
}

fn load<S: Slot>(
    engine: &Engine,
    module: &[u8],
    config: &str,
    serving: fn(Box<Policy<S>>) -> Serving,
) -> anyhow::Result<(Serving, Info)> {
    let limits = SlotLimits { deadline_ms: DEADLINE_MS, ..SlotLimits::default() };
    // However often it fails it is asked again: what its failures do to a slot is not what is played.
    let breaker = Breaker { failures_max: usize::MAX, window_ms: 0 };
    let policy = Policy::<S>::new(engine, limits).with_breaker(breaker);
    let report = policy.load(module, config)?;
    let info = Info { name: report.info.name, version: Some(report.info.version), digest: Some(report.digest) };
    Ok((serving(Box::new(policy)), info))
}

impl SettleRules for Side {
    fn settle(&self, asked: &SettleQuestion<'_>) -> SettleVerdict {
        self.count(SlotName::Settle);
        let native = || rules::settle(asked.window_ms, asked.incumbent);
        let Serving::Settle(policy) = &self.serving else { return native() };
        let at = Moment { now_ms: asked.now_ms, seed: asked.seed, key: device_key(asked.device) };
        let question = contract::settle_question(at, asked.window_ms, asked.incumbent, asked.newcomer, asked.history);
        contract::settle_to_core(self.ask(policy, &question, || contract::settle_to_contract(native())))
    }
}

/// Of the three slots the policy serves one, and the native rules the others.
impl Rules for Side {
    fn choose(&self, at: RuleMoment, user: &str, call: &Call, candidates: &[Candidate]) -> Choice {
        self.count(SlotName::Target);
        let Serving::Target(policy) = &self.serving else {
            return Native::default().choose(at, user, call, candidates);
        };
        let question = contract::target_question(moment(at, user), call, candidates);
        contract::target_to_core(self.ask(policy, &question, || contract::target_to_contract(rules::target(candidates))))
    }

    fn wait(&self, at: RuleMoment, user: &str, call: &Call, absence: &Absence) -> u32 {
        self.count(SlotName::Grace);
        let Serving::Grace(policy) = &self.serving else { return Native::default().wait(at, user, call, absence) };
        let question = contract::grace_question(moment(at, user), call, absence);
        self.ask(policy, &question, || Native::default().wait(at, user, call, absence))
    }

    fn judge(&self, at: RuleMoment, user: &str, call: &Call, doubt: &Doubt) -> Verdict {
        self.count(SlotName::Presence);
        let Serving::Presence(policy) = &self.serving else { return Native::default().judge(at, user, call, doubt) };
        let question = contract::presence_question(moment(at, user), call, doubt);
        let native = || contract::presence_to_contract(Native::default().judge(at, user, call, doubt));
        contract::presence_to_core(self.ask(policy, &question, native))
    }

    fn resume_ms(&self) -> Option<u32> {
        // What another rule promises is not known.
        if matches!(self.serving, Serving::Presence(_)) { None } else { Native::default().resume_ms() }
    }

    fn trusts_silence(&self) -> bool {
        matches!(self.serving, Serving::Presence(_))
    }
}

fn moment(at: RuleMoment, user: &str) -> Moment {
    Moment { now_ms: at.now_ms, seed: at.seed, key: user_key(user) }
}
