//! An experiment that runs in a slot, as this replica carries it out: what decides in each arm, and who is told.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard},
};

use pointwork_core::experiment::{Experiment, Exposure, Slot, Trial};

use super::outbox::{Answered, Outbox};
use crate::{clock::unix_ms, lock::lock};

/// Users whose arm a replica remembers while their horizon lasts; of more, the arm is the bucket's.
const REMEMBERED_MAX: usize = 100_000;

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
    /// The users that were exposed here: their arm, and until when they stay in it.
    remembered: Mutex<HashMap<u64, (usize, u64)>>,
}

impl Running {
    pub(crate) fn new(experiment: Experiment, rules: Vec<Rule>, outbox: Arc<Outbox>) -> Self {
        Self { id: experiment.id().into(), experiment, rules, outbox, remembered: Mutex::default() }
    }

    /// The same with other weights, or rules: who was exposed stays remembered.
    pub(crate) fn succeeded_by(&self, experiment: Experiment, rules: Vec<Rule>) -> Self {
        let next = Self::new(experiment, rules, self.outbox.clone());
        if next.id == self.id {
            lock(&next.remembered).clone_from(&lock(&self.remembered));
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
        let kept = lock(&self.remembered).get(&key).filter(|(_, until_ms)| unix_ms() < *until_ms).map(|(arm, _)| *arm);
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
        if trial.is_none_or(|trial| *trial.experiment != *self.id) {
            self.outbox.expose(&self.id, device, unix_ms());
        }
        self.experiment.exposure(arm, is_failed)
    }

    /// A decision about a call of a user was taken in an arm.
    pub(crate) fn user_decided(&self, key: u64, arm: usize, is_failed: bool) {
        let now_ms = unix_ms();
        {
            let mut remembered = lock(&self.remembered);
            if remembered.len() < REMEMBERED_MAX || remembered.contains_key(&key) {
                let until_ms = now_ms.saturating_add(self.experiment.horizon_ms.into());
                remembered.entry(key).or_insert((arm, until_ms));
            }
        }
        self.outbox.user_decided(&self.id, &unit_of(key), arm, &self.experiment, is_failed, now_ms);
    }

    /// A call of a user ended.
    pub(crate) fn user_answered(&self, key: u64, answered: &Answered) {
        let arm = lock(&self.remembered).get(&key).map(|(arm, _)| *arm);
        if let Some(arm) = arm {
            self.outbox.user_answered(&self.id, &unit_of(key), arm, &self.experiment, answered, unix_ms());
        }
    }

    /// The treatments that a shadow is to be asked of for a unit: that of its bucket.
    pub(crate) fn shadow_of(&self, unit: &str) -> Option<usize> {
        let is_shadowing = self.experiment.shadow_only && self.experiment.status == super::Status::Running;
        is_shadowing.then(|| self.experiment.arm_of(unit)).filter(|arm| *arm > 0)
    }
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
        self.0.write().unwrap_or_else(PoisonError::into_inner)[slot as usize] = running;
    }

    /// A call of a user ended: told to all experiments of the slots that decide about calls.
    pub(crate) fn user_answered(&self, key: u64, answered: &Answered) {
        let slots = [Slot::Target, Slot::Grace, Slot::Presence];
        for running in slots.into_iter().filter_map(|slot| self.running(slot)) {
            running.user_answered(key, answered);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, [Option<Arc<Running>>; 4]> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}
