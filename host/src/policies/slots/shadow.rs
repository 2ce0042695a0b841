//! Asks the treatments of experiments what they would have decided, for the matrix of disagreements.

use std::{borrow::Cow, sync::Arc};

use pointwork_core::experiments::Slot;
use pointwork_policy::{Grace, Policy, Presence, Settle, SlotName, Target, record::Recorded};

use super::state::Policies;
use crate::policies::assignments::{ArmRule, DisagreementCell, RunningExperiment};

/// The name of a verdict in the matrix of disagreements.
pub(super) trait VerdictName {
    fn verdict_name(&self) -> Cow<'static, str>;
}

/// A slot in which experiments can run.
pub(super) trait ExperimentSlot: Recorded<Question: Clone, Verdict: VerdictName> {
    const SLOT: Slot;
    fn policy(policies: &Policies) -> &Arc<Policy<Self>>;
}

macro_rules! experiment_slot {
    ($slot:ident, $field:ident) => {
        impl ExperimentSlot for $slot {
            const SLOT: Slot = Slot::$slot;
            fn policy(policies: &Policies) -> &Arc<Policy<Self>> {
                &policies.$field
            }
        }
    };
}
experiment_slot!(Target, target);
experiment_slot!(Grace, grace);
experiment_slot!(Presence, presence);
experiment_slot!(Settle, settle);

impl VerdictName for pointwork_policy::target::Choice {
    fn verdict_name(&self) -> Cow<'static, str> {
        match self {
            Self::Pick(index) => format!("pick {index}").into(),
            Self::Reject => "reject".into(),
        }
    }
}

impl VerdictName for u32 {
    fn verdict_name(&self) -> Cow<'static, str> {
        match self {
            0 => "fail".into(),
            1..1_000 => "wait below 1 s".into(),
            1_000..10_000 => "wait 1 to 10 s".into(),
            10_000.. => "wait 10 s or more".into(),
        }
    }
}

impl VerdictName for pointwork_policy::presence::Verdict {
    fn verdict_name(&self) -> Cow<'static, str> {
        match self {
            Self::Abort => "abort".into(),
            Self::Hold(_) => "hold".into(),
        }
    }
}

impl VerdictName for pointwork_policy::settle::Verdict {
    fn verdict_name(&self) -> Cow<'static, str> {
        match self {
            Self::Accept => "accept".into(),
            Self::Refuse(_) => "refuse".into(),
            Self::Beside(_) => "beside".into(),
        }
    }
}

/// Asks a treatment what it would have decided, on the shadows' own thread.
pub(super) fn ask_shadow<S: ExperimentSlot>(
    policy: &Arc<Policy<S>>,
    running: &Arc<RunningExperiment>,
    arm: usize,
    question: S::Question,
    served: &S::Verdict,
) {
    let (policy, shadow_of, served) = (policy.clone(), running.clone(), served.verdict_name());
    running.outbox.ask_shadow(Box::new(move || {
        let Some(treatment) = shadow_of.experiment.arms.get(arm) else { return };
        let shadow = match shadow_of.rules.get(arm) {
            Some(ArmRule::Loaded(name)) => match policy.ask_arm(name, &question) {
                Some(shadow) => shadow.verdict.map_or_else(|_| "failed".into(), |verdict| verdict.verdict_name()),
                None => return,
            },
            Some(ArmRule::Failed) => "failed".into(),
            // The arm is what served, or has no module.
            Some(ArmRule::Current | ArmRule::Native) | None => return,
        };
        let cell = DisagreementCell { arm: treatment.name.clone(), served: served.into(), shadow: shadow.into() };
        shadow_of.outbox.note_shadow(&shadow_of.id, cell);
    }));
}

/// The engine's name of a slot.
pub(crate) const fn engine_slot(slot: Slot) -> SlotName {
    match slot {
        Slot::Target => SlotName::Target,
        Slot::Grace => SlotName::Grace,
        Slot::Presence => SlotName::Presence,
        Slot::Settle => SlotName::Settle,
    }
}
