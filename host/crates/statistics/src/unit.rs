//! Defines a unit: one device or user of an experiment.

use serde::{Deserialize, Serialize};

/// The sum of the shares of all arms.
pub const WHOLE: u16 = 10_000;

/// A device or user, with its arm and one number for each outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// The device's or the user's id.
    pub id: String,
    /// The index of its arm; 0 is control.
    pub arm: usize,
    /// The weights of all arms in force at its exposure, in the arms' order, [`WHOLE`] together.
    pub shares: Vec<u16>,
    /// When it was exposed: its first decision in the slot after the experiment began. Milliseconds since 1970.
    pub exposed_ms: u64,
    /// What was measured over its horizon, in the order of the experiment's outcomes. `None` where the unit has no such number.
    pub values: Vec<Option<f64>>,
}

impl Unit {
    /// Whether it can be counted in an experiment with this number of arms and outcomes.
    pub fn fits(&self, arms: usize, outcomes: usize) -> bool {
        self.arm < arms
            && self.shares.len() == arms
            && self.shares.iter().map(|share| u32::from(*share)).sum::<u32>() == u32::from(WHOLE)
            && self.values.len() == outcomes
            && self.values.iter().flatten().all(|value| value.is_finite())
    }

    /// Whether its horizon is over, so that its values no longer change.
    pub fn is_over(&self, horizon_ms: u64, now_ms: u64) -> bool {
        self.exposed_ms.saturating_add(horizon_ms) <= now_ms
    }

    /// The probability that it got into `arm` at its exposure, given that it got into `arm` or control. `None` if one of the two
    /// had no weight.
    pub fn probability(&self, arm: usize) -> Option<f64> {
        let control = f64::from(*self.shares.first()?);
        let treatment = f64::from(*self.shares.get(arm)?);
        (control > 0.0 && treatment > 0.0).then(|| treatment / (treatment + control))
    }
}
