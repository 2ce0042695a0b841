//! Decisions in the arms of experiments, and the shadows that are asked after a decision.

use std::sync::Arc;

use pointwork_core::{
    decision::{Event, Incumbent, Newcomer, SettleVerdict},
    experiment::{Exposure, Slot, Trial},
    rules,
};
use pointwork_policy::{By, Digest, Grace, Policy, Presence, Settle, SlotName, Target, record::Recorded};

use pointwork_contract as contract;

use super::{Policies, moment};
use crate::policies::assignments::{Answered, Assignments, Cell, Rule, Running, unit_of};

/// Whose session it is that `settle` is asked about, and what is known of the device's arm.
pub(crate) struct DeviceInArm<'a> {
    pub(crate) device: &'a str,
    pub(crate) trial: Option<&'a Trial>,
    pub(crate) pinned: Option<&'a Exposure>,
}

/// A verdict, and whether it is the native rule's because who was to decide could not.
pub(super) struct Decided<V> {
    pub(super) verdict: V,
    pub(super) is_failed: bool,
    pub(super) source: Source,
}

/// Where a verdict is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    /// The decision's number in this process, as in its record.
    pub(crate) decision: u64,
    /// The generation that was asked; `None`: the native rule alone.
    pub(crate) generation: Option<Digest>,
}

/// What `settle` said of a device.
pub(crate) struct Settled {
    pub(crate) verdict: SettleVerdict,
    /// What the device's record is to say of its arm.
    pub(crate) exposure: Option<Exposure>,
    pub(crate) source: Source,
}

/// What a verdict is called in the matrix of disagreements.
pub(super) trait Kind {
    fn kind(&self) -> String;
}

/// A slot that experiments can run in.
pub(super) trait Tried: Recorded<Question: Clone, Verdict: Kind> {
    const SLOT: Slot;
    fn policy(policies: &Policies) -> &Arc<Policy<Self>>;
}

macro_rules! tried {
    ($slot:ident, $field:ident) => {
        impl Tried for $slot {
            const SLOT: Slot = Slot::$slot;
            fn policy(policies: &Policies) -> &Arc<Policy<Self>> {
                &policies.$field
            }
        }
    };
}
tried!(Target, target);
tried!(Grace, grace);
tried!(Presence, presence);
tried!(Settle, settle);

impl Kind for pointwork_policy::target::Choice {
    fn kind(&self) -> String {
        match self {
            Self::Pick(index) => format!("pick {index}"),
            Self::Reject => "reject".to_owned(),
        }
    }
}

impl Kind for u32 {
    fn kind(&self) -> String {
        let kind = match self {
            0 => "fail",
            1..1_000 => "wait below 1 s",
            1_000..10_000 => "wait 1 to 10 s",
            10_000.. => "wait 10 s or more",
        };
        kind.to_owned()
    }
}

impl Kind for pointwork_policy::presence::Verdict {
    fn kind(&self) -> String {
        match self {
            Self::Abort => "abort".to_owned(),
            Self::Hold(_) => "hold".to_owned(),
        }
    }
}

impl Kind for pointwork_policy::settle::Verdict {
    fn kind(&self) -> String {
        match self {
            Self::Accept => "accept".to_owned(),
            Self::Refuse(_) => "refuse".to_owned(),
            Self::Beside(_) => "beside".to_owned(),
        }
    }
}

impl Policies {
    /// What runs in each slot.
    pub(crate) fn assignments(&self) -> &Assignments {
        &self.assignments
    }

    /// A call of a user ended; `key` stands for it.
    pub(crate) fn answered(&self, key: u64, answered: &Answered) {
        self.assignments.user_answered(key, answered);
    }

    /// Which of two sockets holds a device's session, decided in its arm if an experiment runs. `history` is newest first.
    pub(crate) fn settle_device(
        &self,
        whom: &DeviceInArm<'_>,
        window_ms: u32,
        incumbent: &Incumbent,
        newcomer: &Newcomer,
        history: &[Event],
    ) -> Settled {
        let key = pointwork_policy::device_key(whom.device);
        let question = contract::settle_question(moment(key), window_ms, incumbent, newcomer, history);
        let native = || contract::settle_to_contract(rules::settle(window_ms, incumbent));
        let running = self.assignments.running(Slot::Settle);
        let arm = running.as_ref().and_then(|running| running.arm_of_device(whom.device, whom.trial, whom.pinned));
        let in_arm = running.as_deref().zip(arm);
        let shadow = running.as_ref().filter(|_| arm.is_none()).and_then(|running| {
            let arm = running.shadow_of(whom.device)?;
            Some((running.clone(), arm))
        });
        let Decided { verdict, is_failed, source } = self.decide::<Settle>(in_arm, shadow, question, native);
        let exposure =
            in_arm.and_then(|(running, arm)| running.device_decided(whom.device, whom.trial, arm, is_failed));
        Settled { verdict: contract::settle_to_core(verdict), exposure, source }
    }

    /// Decides about a call of the user that `key` stands for, in its arm if an experiment runs.
    pub(super) fn decide_for_user<S: Tried>(
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
        let Decided { verdict, is_failed, .. } = self.decide::<S>(in_arm, shadow, question, native);
        if let Some((running, arm)) = in_arm {
            running.user_decided(key, arm, is_failed);
        }
        verdict
    }

    /// Decides, in an arm if one is given, and records it; then has `shadow` asked, if there is one.
    pub(super) fn decide<S: Tried>(
        &self,
        in_arm: Option<(&Running, usize)>,
        shadow: Option<(Arc<Running>, usize)>,
        question: S::Question,
        native: impl FnOnce() -> S::Verdict,
    ) -> Decided<S::Verdict> {
        let policy = S::policy(self);
        let rule = in_arm.and_then(|(running, arm)| running.rules.get(arm));
        let decision = match rule {
            None | Some(Rule::Current) => policy.decide(&question, native),
            Some(Rule::Native | Rule::Failed) => policy.decide_native(native),
            Some(Rule::Loaded(name)) => policy.decide_by(Some(name), &question, native),
        };
        let is_failed = rule == Some(&Rule::Failed) || matches!(decision.by, By::Native { reason: Some(_) });
        if let Some((running, arm)) = shadow {
            ask_shadow::<S>(policy, &running, arm, question.clone(), &decision.verdict);
        }
        let name = in_arm.and_then(|(running, arm)| running.experiment.arms.get(arm));
        if decision.digest.is_some() {
            self.costs[S::NAME as usize].record_duration(decision.cost);
        }
        self.recorder.note::<S>(question, &decision, name.map(|arm| arm.name.as_str().into()));
        let source = Source { decision: decision.id, generation: decision.digest };
        Decided { verdict: decision.verdict, is_failed, source }
    }
}

/// Asks a treatment what it would have decided, by a thread of its own.
fn ask_shadow<S: Tried>(
    policy: &Arc<Policy<S>>,
    running: &Arc<Running>,
    arm: usize,
    question: S::Question,
    served: &S::Verdict,
) {
    let (policy, shadow_of, served) = (policy.clone(), running.clone(), served.kind());
    running.outbox.ask_shadow(Box::new(move || {
        let Some(treatment) = shadow_of.experiment.arms.get(arm) else { return };
        let shadow = match shadow_of.rules.get(arm) {
            Some(Rule::Loaded(name)) => match policy.ask_arm(name, &question) {
                Some(shadow) => shadow.verdict.map_or_else(|_| "failed".to_owned(), |verdict| verdict.kind()),
                None => return,
            },
            Some(Rule::Failed) => "failed".to_owned(),
            // It is what served, or has no module to ask.
            Some(Rule::Current | Rule::Native) | None => return,
        };
        let cell = Cell { arm: treatment.name.clone(), served, shadow };
        shadow_of.outbox.note_shadow(&shadow_of.id, cell);
    }));
}

/// The slot's name in the engine.
pub(crate) const fn engine_slot(slot: Slot) -> SlotName {
    match slot {
        Slot::Target => SlotName::Target,
        Slot::Grace => SlotName::Grace,
        Slot::Presence => SlotName::Presence,
        Slot::Settle => SlotName::Settle,
    }
}
