//! An experiment that runs in a slot, as this replica carries it out: what decides in each arm, and who is told.

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::{collections::HashMap, sync::Arc};

use pointwork_core::experiment::{Experiment, Exposure, Slot, Status, Trial};

use super::outbox::{Answered, Outbox};
use crate::driver::clock::unix_ms;

/// Users whose arm a replica remembers while their horizon lasts; of more, the arm is the bucket's.
const REMEMBERED_MAX: usize = 100_000;
/// For so long from the exposure on each decision announces the device again, should that have been lost before; in milliseconds.
const ANNOUNCED_MS: u64 = 60_000;

/// What decides in an arm on this replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rule {
    /// What serves the slot.
    Current,
    /// The native rule.
    Native,
    /// The engine's arm of this name.
    Loaded(Arc<str>),
    /// A module that this replica cannot load: the native rule answers, and that is a failure.
    Failed,
}

/// An experiment that runs.
pub(crate) struct Running {
    pub(crate) experiment: Experiment,
    pub(crate) id: Arc<str>,
    /// By arm.
    pub(crate) rules: Vec<Rule>,
    pub(crate) outbox: Arc<Outbox>,
    /// The users that were exposed here.
    remembered: Mutex<HashMap<u64, Remembered>>,
}

#[derive(Clone, Copy)]
struct Remembered {
    arm: usize,
    /// Until when it stays in it.
    until_ms: u64,
    /// The arm that decided last.
    last: usize,
}

impl Running {
    pub(crate) fn new(experiment: Experiment, rules: Vec<Rule>, outbox: Arc<Outbox>) -> Self {
        Self { id: experiment.id().into(), experiment, rules, outbox, remembered: Mutex::default() }
    }

    /// The same with other weights, or rules: who was exposed stays remembered.
    pub(crate) fn succeeded_by(&self, experiment: Experiment, rules: Vec<Rule>) -> Self {
        let next = Self::new(experiment, rules, self.outbox.clone());
        if next.id == self.id {
            next.remembered.lock().clone_from(&self.remembered.lock());
        }
        next
    }

    /// The arm that decides for a device.
    pub(crate) fn arm_of_device(
        &self,
        device: &str,
        trial: Option<&Trial>,
        pinned: Option<&Exposure>,
    ) -> Option<usize> {
        self.experiment.arm_for(device, trial, pinned, unix_ms())
    }

    /// The arm that decides for a user, by its key.
    pub(crate) fn arm_of_user(&self, key: u64) -> Option<usize> {
        let bucket = self.experiment.arm_for(&unit_of(key), None, None, 0)?;
        let kept = self.remembered.lock().get(&key).filter(|kept| unix_ms() < kept.until_ms).map(|kept| kept.arm);
        let has_weight = |arm: &usize| self.experiment.weights.get(*arm).is_some_and(|weight| *weight > 0);
        Some(kept.filter(has_weight).unwrap_or(bucket))
    }

    /// A decision of `settle` was taken in an arm: what the device's record will say of it.
    pub(crate) fn device_decided(
        &self,
        device: &str,
        trial: Option<&Trial>,
        arm: usize,
        is_failed: bool,
    ) -> Option<Exposure> {
        let exposure = self.experiment.exposure(arm, is_failed)?;
        let trial = trial.filter(|trial| *trial.experiment == *self.id);
        if is_to_be_announced(trial, &exposure, unix_ms()) {
            self.outbox.expose(&self.id, device);
        }
        Some(exposure)
    }

    /// A decision about a call of a user was taken in an arm.
    pub(crate) fn user_decided(&self, key: u64, arm: usize, is_failed: bool) {
        let now_ms = unix_ms();
        {
            let mut remembered = self.remembered.lock();
            if remembered.len() < REMEMBERED_MAX || remembered.contains_key(&key) {
                let until_ms = now_ms.saturating_add(self.experiment.horizon_ms.into());
                remembered.entry(key).or_insert(Remembered { arm, until_ms, last: arm }).last = arm;
            }
        }
        self.outbox.user_decided(&self.id, &unit_of(key), arm, &self.experiment, is_failed, now_ms);
    }

    /// A call of a user ended.
    pub(crate) fn user_answered(&self, key: u64, answered: &Answered) {
        let arm = self.remembered.lock().get(&key).map(|kept| kept.last);
        if let Some(arm) = arm {
            self.outbox.user_answered(&self.id, &unit_of(key), arm, &self.experiment, answered, unix_ms());
        }
    }

    /// The treatments that a shadow is to be asked of for a unit: that of its bucket.
    pub(crate) fn shadow_of(&self, unit: &str) -> Option<usize> {
        let is_shadowing = self.experiment.shadow_only && self.experiment.status == Status::Running;
        is_shadowing.then(|| self.experiment.arm_of(unit)).filter(|arm| *arm > 0)
    }
}

/// Whether whoever looks at the units is to be told of a device that an arm decided for: an account of it begins, or has just begun.
/// `trial`: what its record holds of this experiment.
fn is_to_be_announced(trial: Option<&Trial>, exposure: &Exposure, now_ms: u64) -> bool {
    let Some(trial) = trial else { return true };
    let is_young = |trial: &Trial| now_ms < trial.exposed_ms.saturating_add(ANNOUNCED_MS);
    if trial.covers(&exposure.arm, now_ms) {
        return is_young(trial);
    }
    let guard = trial.guard.as_deref().filter(|guard| guard.covers(&exposure.arm, now_ms));
    !exposure.is_control && guard.is_none_or(is_young)
}

/// What a user is called as a unit: the hash of its id, which policies know it by. So no report names anybody.
pub(crate) fn unit_of(key: u64) -> String {
    format!("{key:016x}")
}

/// What runs in each slot; read by every decision.
#[derive(Default)]
pub(crate) struct Assignments(RwLock<[Option<Arc<Running>>; 4]>);

impl Assignments {
    pub(crate) fn running(&self, slot: Slot) -> Option<Arc<Running>> {
        self.read()[slot as usize].clone()
    }

    pub(crate) fn set(&self, slot: Slot, running: Option<Arc<Running>>) {
        self.0.write()[slot as usize] = running;
    }

    /// A call of a user ended: told to all experiments of the slots that decide about calls.
    pub(crate) fn user_answered(&self, key: u64, answered: &Answered) {
        let slots = [Slot::Target, Slot::Grace, Slot::Presence];
        for running in slots.into_iter().filter_map(|slot| self.running(slot)) {
            running.user_answered(key, answered);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, [Option<Arc<Running>>; 4]> {
        self.0.read()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pointwork_core::{device::Record, experiment::Exposure};

    use super::*;

    fn exposure(arm: &str, is_control: bool) -> Exposure {
        Exposure {
            experiment: "e:s".to_owned(),
            arm: arm.to_owned(),
            is_control,
            weights: vec![5_000, 5_000],
            horizon_ms: 600_000,
            window_ms: 2_500,
            silence_ms: 25_000,
            is_failed: false,
        }
    }

    #[test]
    fn a_device_is_announced_when_an_account_of_it_begins_and_for_a_while() {
        let (control, treatment) = (exposure("control", true), exposure("treatment", false));
        assert!(is_to_be_announced(None, &control, 1_000));
        let record = Record::default().exposed(&control, 1_000);
        let announced =
            |record: &Record, exposure, now_ms| is_to_be_announced(record.trial.as_deref(), exposure, now_ms);
        assert!(announced(&record, &control, 60_999) && !announced(&record, &control, 61_000));
        // Its horizon is over, and it comes into the treatment.
        assert!(!announced(&record, &control, 601_000), "the control has no guardrails");
        assert!(announced(&record, &treatment, 601_000));
        let record = record.exposed(&treatment, 601_000);
        assert!(announced(&record, &treatment, 660_999) && !announced(&record, &treatment, 661_000));
        assert!(announced(&record, &treatment, 1_201_000), "the account begins anew");
    }
}
