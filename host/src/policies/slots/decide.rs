//! Decides in each slot: asks the policy or the arm of an experiment, and uses the native rule when it fails.

use std::sync::Arc;

use pointwork_contract as contract;
use pointwork_core::{
    decisions::{Absence, Call, Candidate, Choice, Doubt, Event, Incumbent, Newcomer, SettleVerdict, Verdict, rules},
    experiments::{Exposure, Slot, Trial},
};
use pointwork_policy::{By, Digest, Grace, Presence, Settle, Target, contract::Moment};

use super::{
    shadow::{ExperimentSlot, ask_shadow},
    state::Policies,
};
use crate::{
    driver::clock::unix_ms,
    policies::assignments::{ArmRule, RunningExperiment, unit_of},
};

/// The device whose session `settle` is asked about, and what is known of its arm.
pub(crate) struct DeviceInArm<'a> {
    pub(crate) device: &'a str,
    pub(crate) trial: Option<&'a Trial>,
    pub(crate) pinned: Option<&'a Exposure>,
}

struct SlotDecision<V> {
    verdict: V,
    /// Whether the native rule decided because the policy or the arm failed.
    is_failed: bool,
    source: DecisionSource,
}

/// What made a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecisionSource {
    /// The decision's number in this process, as in its record.
    pub(crate) decision: u64,
    /// The generation that was asked; `None` when only the native rule was.
    pub(crate) generation: Option<Digest>,
}

/// The decision of `settle` about a device.
pub(crate) struct SettleDecision {
    pub(crate) verdict: SettleVerdict,
    /// The exposure to write to the device's record.
    pub(crate) exposure: Option<Exposure>,
    pub(crate) source: DecisionSource,
}

impl Policies {
    /// Which candidate gets the call. `key` stands for the user, see [`pointwork_policy::user_key`].
    pub fn choose(&self, key: u64, call: &Call, candidates: &[Candidate]) -> Choice {
        let question = contract::target_question(moment(key), call, candidates);
        let native = || contract::target_to_contract(rules::target(candidates));
        contract::target_to_core(self.decide_for_user::<Target>(key, question, native))
    }

    /// For how many milliseconds a call that found no daemon is held.
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

    /// Which of two sockets holds a device's session; experiments are ignored. `key` stands for the device; `history` is newest first.
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

    /// Which of two sockets holds a device's session, decided in its arm if an experiment runs. `history` is newest first.
    pub(crate) fn settle_device(
        &self,
        device: &DeviceInArm<'_>,
        window_ms: u32,
        incumbent: &Incumbent,
        newcomer: &Newcomer,
        history: &[Event],
    ) -> SettleDecision {
        let key = pointwork_policy::device_key(device.device);
        let question = contract::settle_question(moment(key), window_ms, incumbent, newcomer, history);
        let native = || contract::settle_to_contract(rules::settle(window_ms, incumbent));
        let running = self.assignments.running(Slot::Settle);
        let arm =
            running.as_ref().and_then(|running| running.arm_of_device(device.device, device.trial, device.pinned));
        let in_arm = running.as_deref().zip(arm);
        let shadow = running.as_ref().filter(|_| arm.is_none()).and_then(|running| {
            let arm = running.shadow_of(device.device)?;
            Some((running.clone(), arm))
        });
        let SlotDecision { verdict, is_failed, source } = self.decide::<Settle>(in_arm, shadow, question, native);
        let exposure =
            in_arm.and_then(|(running, arm)| running.device_decided(device.device, device.trial, arm, is_failed));
        SettleDecision { verdict: contract::settle_to_core(verdict), exposure, source }
    }

    /// Decides about a call of the user that `key` stands for, in its arm if an experiment runs.
    fn decide_for_user<S: ExperimentSlot>(
        &self,
        key: u64,
        question: S::Question,
        native: impl FnOnce() -> S::Verdict,
    ) -> S::Verdict {
        let running = self.assignments.running(S::SLOT);
        let arm = running.as_ref().and_then(|running| running.arm_of_user(key));
        let shadow = running.as_ref().filter(|_| arm.is_none()).and_then(|running| {
            let arm = running.shadow_of(&unit_of(key))?;
            Some((running.clone(), arm))
        });
        let in_arm = running.as_deref().zip(arm);
        let SlotDecision { verdict, is_failed, .. } = self.decide::<S>(in_arm, shadow, question, native);
        if let Some((running, arm)) = in_arm {
            running.user_decided(key, arm, is_failed);
        }
        verdict
    }

    /// Decides, in an arm if one is given, and records the decision. Also asks `shadow` if there is one.
    fn decide<S: ExperimentSlot>(
        &self,
        in_arm: Option<(&RunningExperiment, usize)>,
        shadow: Option<(Arc<RunningExperiment>, usize)>,
        question: S::Question,
        native: impl FnOnce() -> S::Verdict,
    ) -> SlotDecision<S::Verdict> {
        let policy = S::policy(self);
        let rule = in_arm.and_then(|(running, arm)| running.rules.get(arm));
        let decision = match rule {
            None | Some(ArmRule::Current) => policy.decide(&question, native),
            Some(ArmRule::Native | ArmRule::Failed) => policy.decide_native(native),
            Some(ArmRule::Loaded(name)) => policy.decide_by(Some(name), &question, native),
        };
        let is_failed = rule == Some(&ArmRule::Failed) || matches!(decision.by, By::Native { reason: Some(_) });
        if let Some((running, arm)) = shadow {
            ask_shadow::<S>(policy, &running, arm, question.clone(), &decision.verdict);
        }
        let name = in_arm.and_then(|(running, arm)| running.experiment.arms.get(arm));
        if decision.digest.is_some() {
            self.costs[S::NAME as usize].record_duration(decision.cost);
        }
        if let Some(records) = self.records.get() {
            records.note::<S>(question, &decision, name.map(|arm| arm.name.as_str().into()));
        }
        let source = DecisionSource { decision: decision.id, generation: decision.digest };
        SlotDecision { verdict: decision.verdict, is_failed, source }
    }
}

fn moment(key: u64) -> Moment {
    Moment { now_ms: unix_ms(), seed: fastrand::u64(..), key }
}
