//! Chooses the arm for each unit while an experiment runs in a slot, and notes what the arms decide.

use parking_lot::{Mutex, RwLock};
use std::{collections::HashMap, sync::Arc};

use pointwork_core::experiments::{Experiment, ExperimentStatus, Exposure, Slot, Trial};

use super::outbox::{EndedCall, ExperimentOutbox, UserInArm};
use crate::driver::clock::unix_ms;

/// The most users whose arm a replica remembers during their horizon. For further users, the bucket's arm decides.
const REMEMBERED_MAX: usize = 100_000;
/// For this long after the exposure, each decision announces the device again, because the first announcement can be lost. In
/// milliseconds.
const ANNOUNCE_MS: u64 = 60_000;

/// What decides in an arm on this replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArmRule {
    /// The policy that serves the slot.
    Current,
    /// The native rule.
    Native,
    /// The engine's arm with this name.
    Loaded(Arc<str>),
    /// A module that this replica cannot load. The native rule answers, and each decision counts as a failure.
    Failed,
}

/// An experiment that runs.
pub(crate) struct RunningExperiment {
    pub(crate) experiment: Experiment,
    pub(crate) id: Arc<str>,
    /// By arm.
    pub(crate) rules: Vec<ArmRule>,
    pub(crate) outbox: Arc<ExperimentOutbox>,
    /// By key: the users that were exposed on this replica.
    remembered: Mutex<HashMap<u64, RememberedArm>>,
}

#[derive(Clone, Copy)]
struct RememberedArm {
    arm: usize,
    /// Until when the user stays in it.
    until_ms: u64,
    /// The arm that decided last.
    last: usize,
}

impl RunningExperiment {
    pub(crate) fn new(experiment: Experiment, rules: Vec<ArmRule>, outbox: Arc<ExperimentOutbox>) -> Self {
        Self { id: experiment.id().into(), experiment, rules, outbox, remembered: Mutex::default() }
    }

    /// The same experiment with other weights or rules. Remembered users stay remembered.
    pub(crate) fn succeeded_by(&self, experiment: Experiment, rules: Vec<ArmRule>) -> Self {
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

    /// Notes a decision of `settle` in an arm. Returns the exposure to write to the device's record.
    pub(crate) fn device_decided(
        &self,
        device: &str,
        trial: Option<&Trial>,
        arm: usize,
        is_failed: bool,
    ) -> Option<Exposure> {
        let exposure = self.experiment.exposure(arm, is_failed)?;
        let trial = trial.filter(|trial| *trial.experiment == *self.id);
        if must_announce(trial, &exposure, unix_ms()) {
            self.outbox.expose(&self.id, device);
        }
        Some(exposure)
    }

    /// Notes a decision about a call of a user in an arm.
    pub(crate) fn user_decided(&self, key: u64, arm: usize, is_failed: bool) {
        let now_ms = unix_ms();
        {
            let mut remembered = self.remembered.lock();
            if remembered.len() < REMEMBERED_MAX || remembered.contains_key(&key) {
                let until_ms = now_ms.saturating_add(self.experiment.horizon_ms.into());
                remembered.entry(key).or_insert(RememberedArm { arm, until_ms, last: arm }).last = arm;
            }
        }
        self.outbox.user_decided(&self.user(&unit_of(key), arm), is_failed, now_ms);
    }

    /// Notes the end of a call of a user.
    pub(crate) fn call_ended(&self, key: u64, call: &EndedCall) {
        let arm = self.remembered.lock().get(&key).map(|kept| kept.last);
        if let Some(arm) = arm {
            self.outbox.call_ended(&self.user(&unit_of(key), arm), call, unix_ms());
        }
    }

    fn user<'a>(&'a self, unit: &'a str, arm: usize) -> UserInArm<'a> {
        UserInArm { id: &self.id, experiment: &self.experiment, unit, arm }
    }

    /// The treatment that is asked as a shadow for a unit: that of its bucket.
    pub(crate) fn shadow_of(&self, unit: &str) -> Option<usize> {
        let is_shadowing = self.experiment.shadow_only && self.experiment.status == ExperimentStatus::Running;
        is_shadowing.then(|| self.experiment.arm_of(unit)).filter(|arm| *arm > 0)
    }
}

/// Whether a device must be announced to the replica that evaluates the units: its observation begins now, or has just begun.
/// `trial`: what the device's record holds of this experiment.
fn must_announce(trial: Option<&Trial>, exposure: &Exposure, now_ms: u64) -> bool {
    let Some(trial) = trial else { return true };
    let is_young = |trial: &Trial| now_ms < trial.exposed_ms.saturating_add(ANNOUNCE_MS);
    if trial.covers(&exposure.arm, now_ms) {
        return is_young(trial);
    }
    let guard = trial.guard.as_deref().filter(|guard| guard.covers(&exposure.arm, now_ms));
    !exposure.is_control && guard.is_none_or(is_young)
}

/// The unit of a user: the hash of its id, by which policies know it. So no report contains the id.
pub(crate) fn unit_of(key: u64) -> String {
    format!("{key:016x}")
}

/// The experiment that runs in each slot. Every decision reads it.
#[derive(Default)]
pub(crate) struct Assignments(RwLock<[Option<Arc<RunningExperiment>>; 4]>);

impl Assignments {
    pub(crate) fn running(&self, slot: Slot) -> Option<Arc<RunningExperiment>> {
        self.0.read()[slot as usize].clone()
    }

    pub(crate) fn set(&self, slot: Slot, running: Option<Arc<RunningExperiment>>) {
        self.0.write()[slot as usize] = running;
    }

    /// Notes the end of a call of a user in all experiments of the slots that decide about calls.
    pub(crate) fn call_ended(&self, key: u64, call: &EndedCall) {
        let slots = [Slot::Target, Slot::Grace, Slot::Presence];
        for running in slots.into_iter().filter_map(|slot| self.running(slot)) {
            running.call_ended(key, call);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pointwork_core::{devices::DeviceRecord, experiments::Exposure};

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
    fn a_device_is_announced_when_its_observation_begins_and_for_a_minute() {
        let (control, treatment) = (exposure("control", true), exposure("treatment", false));
        assert!(must_announce(None, &control, 1_000));
        let record = DeviceRecord::default().exposed(&control, 1_000);
        let announced =
            |record: &DeviceRecord, exposure, now_ms| must_announce(record.trial.as_deref(), exposure, now_ms);
        assert!(announced(&record, &control, 60_999) && !announced(&record, &control, 61_000));
        // Its horizon is over, and it comes into the treatment.
        assert!(!announced(&record, &control, 601_000), "the control has no guardrails");
        assert!(announced(&record, &treatment, 601_000));
        let record = record.exposed(&treatment, 601_000);
        assert!(announced(&record, &treatment, 660_999) && !announced(&record, &treatment, 661_000));
        assert!(announced(&record, &treatment, 1_201_000), "the observation begins again");
    }
}
