//! Decides at random how long things take in a world of devices and what fails in it.

use pointwork_core::devices::OpId;
use pointwork_core::experiments::{Experiment, Exposure, Trial};

use super::flaws::DeviceFlaw;
use crate::chance::Chance;
use crate::devices::conditions::Conditions;
use crate::draws::{Drawn, Draws};
use crate::time::{MS, SECOND};

/// An operation that takes longer than anybody waits for it: to the replica the store is away.
const STUCK_US: u64 = 3 * SECOND;

/// What goes wrong at random. Each number means: once in so many times; 0 is never.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RandomFaults {
    /// A message between replicas is lost.
    pub(super) loss: usize,
    /// A step is slow.
    pub(super) slow: usize,
    /// An answer of the store comes when nobody waits for it any more.
    pub(super) stuck: usize,
    /// A proof of a token or a verdict of the rule never comes.
    pub(super) unanswered: usize,
}

pub(super) struct RandomConditions {
    draws: Draws,
    chance: Chance,
    pub(super) faults: RandomFaults,
    /// A mistake that the world is made to make.
    pub(super) flaw: Option<DeviceFlaw>,
    /// What runs in `settle`.
    pub(super) experiment: Option<Experiment>,
    questions: u64,
}

impl RandomConditions {
    /// Conditions under which nothing goes wrong.
    pub(super) fn new(seed: u64) -> RandomConditions {
        RandomConditions {
            draws: Draws::new(seed),
            chance: Chance::new(seed),
            faults: RandomFaults::default(),
            flaw: None,
            experiment: None,
            questions: 0,
        }
    }

    fn once_in(&mut self, times: usize) -> bool {
        times > 0 && self.chance.once_in(times)
    }

    fn random_us(&mut self) -> u64 {
        if self.once_in(self.faults.slow) {
            return self.chance.below_u64(900 * MS);
        }
        200 + self.chance.below_u64(2 * MS)
    }
}

impl Conditions for RandomConditions {
    fn store_us(&mut self, _: usize) -> u64 {
        self.random_us()
    }

    fn peer_us(&mut self, _: usize) -> u64 {
        self.random_us()
    }

    fn packet_us(&mut self, _: u64, _: u64) -> u64 {
        self.random_us()
    }

    fn is_lost(&mut self, _: usize, _: bool) -> bool {
        self.once_in(self.faults.loss)
    }

    fn is_one_in_four(&mut self, _: usize) -> bool {
        self.once_in(4)
    }

    fn stuck_us(&mut self) -> Option<u64> {
        self.once_in(self.faults.stuck).then_some(STUCK_US)
    }

    fn late_swap_us(&mut self) -> Option<u64> {
        self.once_in(6).then(|| self.chance.below_u64(9 * SECOND))
    }

    fn answer_us(&mut self) -> Option<u64> {
        if self.once_in(self.faults.unanswered) { None } else { Some(self.random_us() / 2) }
    }

    fn question_seed(&mut self, device: usize) -> u64 {
        self.questions += 1;
        self.draws.bits(Drawn::Question, device as u64, self.questions)
    }

    fn close_us(&mut self) -> Option<u64> {
        Some(self.chance.below_u64(3 * MS))
    }

    fn unnoticed_us(&self, _: u64) -> u64 {
        20 * SECOND
    }

    fn skew_ms(&mut self, _: usize) -> u64 {
        self.chance.below_u64(40)
    }

    /// The schedule says which.
    fn killed(&self, nth: u64, running: usize) -> Vec<usize> {
        let last = running.checked_sub(1);
        last.map(|last| last.min(nth as usize)).into_iter().collect()
    }

    fn death_us(&mut self, _: usize, _: u64) -> (u64, u64) {
        (20 * MS + self.chance.below_u64(400 * MS), 3 * SECOND)
    }

    fn store_back_us(&mut self, _: usize, _: u64) -> u64 {
        self.chance.below_u64(SECOND)
    }

    fn heal(&mut self) {
        self.faults = RandomFaults::default();
    }

    fn has_flaw(&self, flaw: DeviceFlaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn exposure(
        &self,
        device: &str,
        op: OpId,
        trial: Option<&Trial>,
        pinned: Option<&Exposure>,
        now_ms: u64,
    ) -> Option<Exposure> {
        let experiment = self.experiment.as_ref()?;
        let arm = experiment.arm_for(device, trial, pinned, now_ms)?;
        assert_eq!(arm, experiment.arm_of(device), "trial-counts: {device} changes its arm while no weight does");
        // A decision fails now and then.
        experiment.exposure(arm, op.0.is_multiple_of(7))
    }
}
