//! Computes the results of units from the records of devices and from the sums of users.

use pointwork_core::experiments::{Experiment, Slot, Trial};

use pointwork_statistics::{MeasuredOutcome, Unit, outcome};

use super::{
    error::ExperimentError,
    state::Experiments,
    store::{UnitRow, UserSums},
};
use crate::{driver::clock::unix_ms, policies::assignments::ERROR_KINDS};

/// Decisions can be written this much later, and clocks differ, so results are final only then. In milliseconds.
pub(super) const LATE_MS: u64 = 5_000;

/// The outcomes that are measured in a slot.
pub(super) fn outcomes(slot: Slot) -> Vec<MeasuredOutcome> {
    match slot {
        Slot::Settle => outcome::SETTLE.to_vec(),
        Slot::Target | Slot::Grace | Slot::Presence => outcome::rpc(&ERROR_KINDS),
    }
}

/// The results of a unit so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct UnitResult {
    /// `None` if the unit was not exposed, or its record is gone.
    pub(super) row: Option<UnitRow>,
    /// What a treatment did outside the observation: after the horizon, or in another arm. Used by guardrails only.
    pub(super) guard: Option<UnitRow>,
}

impl UnitRow {
    /// Whether the results no longer change.
    pub(super) fn is_final(&self, experiment: &Experiment, now_ms: u64) -> bool {
        self.exposed_ms + u64::from(experiment.horizon_ms) + LATE_MS <= now_ms
    }

    /// The row of a unit whose record is gone: the unit counts as exposed, but in no outcome.
    pub(super) fn emptied(&self) -> Self {
        Self { values: vec![None; self.values.len()], ..self.clone() }
    }

    pub(super) fn unit(&self, id: &str) -> Unit {
        let share = |weight: &u32| u16::try_from(*weight).unwrap_or(u16::MAX);
        Unit {
            id: id.to_owned(),
            arm: self.arm,
            shares: self.weights.iter().map(share).collect(),
            exposed_ms: self.exposed_ms,
            values: self.values.clone(),
        }
    }
}

impl Experiments {
    /// Reads the results of units, in the order given.
    pub(super) async fn results(
        &self,
        experiment: &Experiment,
        units: &[String],
    ) -> Result<Vec<UnitResult>, ExperimentError> {
        let id = experiment.id();
        if experiment.slot == Slot::Settle {
            let now_ms = unix_ms();
            let records = self.devices.read_each(units).await?;
            let trials = records.into_iter().map(|record| record.and_then(|record| record.trial));
            let result = |trial: Option<Box<Trial>>| {
                let row = |trial: &Trial| of_trial(experiment, &id, trial, now_ms);
                let guard = trial.as_deref().and_then(|trial| trial.guard.as_deref());
                UnitResult { row: trial.as_deref().and_then(row), guard: guard.and_then(row) }
            };
            Ok(trials.map(result).collect())
        } else {
            let users = self.store.users(&id, units).await?;
            let result = |sums: Option<UserSums>| UnitResult {
                row: sums.as_ref().map(of_user),
                guard: sums.as_ref().and_then(guard_of_user),
            };
            Ok(users.into_iter().map(result).collect())
        }
    }
}

fn of_trial(experiment: &Experiment, id: &str, trial: &Trial, now_ms: u64) -> Option<UnitRow> {
    if *trial.experiment != *id {
        return None;
    }
    let is = trial.outcomes(now_ms);
    let values = [
        f64::from(is.flips),
        is.stable_ms as f64,
        f64::from(is.refused),
        is.stranded_ms as f64,
        is.offline_ms as f64,
        f64::from(is.failures),
    ];
    Some(UnitRow {
        arm: experiment.arm(&trial.arm)?,
        weights: trial.weights.to_vec(),
        exposed_ms: trial.exposed_ms,
        values: values.map(Some).to_vec(),
        decisions: is.decisions.into(),
        failures: is.failures.into(),
        stranded_ms: is.stranded_ms,
        offline_ms: is.offline_ms,
    })
}

fn of_user(sums: &UserSums) -> UnitRow {
    let count = |name: &str| sums.counts.get(name).copied().unwrap_or_default();
    let per = |sum: f64, of: u64| (of > 0).then(|| sum / of as f64);
    let (calls, answered) = (count("calls"), count("success"));
    let millis = |name: &str| count(name) as f64 / 1_000.0;
    let mut values = vec![
        Some(calls as f64),
        per(answered as f64, calls),
        per(millis("waited_us"), calls),
        per(millis("took_us"), answered),
        Some(count("failures") as f64),
    ];
    values.extend(ERROR_KINDS.iter().map(|kind| per(count(kind) as f64, calls)));
    UnitRow {
        arm: sums.arm,
        weights: sums.weights.clone(),
        exposed_ms: sums.exposed_ms,
        values,
        decisions: count("decisions"),
        failures: count("failures"),
        ..UnitRow::default()
    }
}

fn guard_of_user(sums: &UserSums) -> Option<UnitRow> {
    let guard = sums.guard.as_ref()?;
    Some(UnitRow {
        arm: guard.arm,
        exposed_ms: guard.since_ms,
        decisions: guard.decisions,
        failures: guard.failures,
        ..UnitRow::default()
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_a_user_become_shares_and_means() {
        let counts =
            [("calls", 4), ("success", 3), ("timeout", 1), ("waited_us", 8_000), ("took_us", 9_000), ("decisions", 5)];
        let counts = counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        let row = of_user(&UserSums { arm: 1, weights: vec![5_000, 5_000], exposed_ms: 7, counts, guard: None });
        let expected = [Some(4.0), Some(0.75), Some(2.0), Some(3.0), Some(0.0)];
        assert_eq!((&row.values[..5], row.decisions, row.arm), (&expected[..], 5, 1));
        assert_eq!(row.values[5..], [Some(0.0), Some(0.0), Some(0.0), Some(0.25), Some(0.0), Some(0.0)]);
        assert_eq!(row.values.len(), outcomes(Slot::Target).len());
        assert!(row.unit("u").fits(2, row.values.len()));
        let silent = of_user(&UserSums { weights: vec![10_000, 0], ..UserSums::default() });
        assert_eq!((silent.values[0], silent.values[1], silent.values[3]), (Some(0.0), None, None));
    }

    #[test]
    fn decisions_outside_the_observation_of_a_user_are_a_separate_row() {
        let guard = crate::policies::experiments::store::UserGuard { arm: 2, since_ms: 9, decisions: 5, failures: 3 };
        let row = guard_of_user(&UserSums { guard: Some(guard), ..UserSums::default() }).unwrap();
        assert_eq!((row.arm, row.exposed_ms, row.decisions, row.failures), (2, 9, 5, 3));
        assert_eq!(guard_of_user(&UserSums::default()), None);
    }

    #[test]
    fn a_trial_of_another_experiment_has_no_row() {
        let arm = |name: &str| pointwork_core::experiments::Arm {
            name: name.to_owned(),
            module: pointwork_core::experiments::ArmModule::Native,
        };
        let experiment = Experiment {
            name: "e".to_owned(),
            slot: Slot::Settle,
            salt: "s".to_owned(),
            arms: vec![arm("control"), arm("treatment")],
            weights: vec![5_000, 5_000],
            status: pointwork_core::experiments::ExperimentStatus::Running,
            shadow_only: false,
            horizon_ms: 60_000,
            window_ms: 2_500,
            silence_ms: 25_000,
            guardrails: Default::default(),
            created_ms: 0,
            ended_ms: None,
            version: 1,
        };
        let exposure = experiment.exposure(1, true).unwrap();
        let record = pointwork_core::devices::DeviceRecord::default().exposed(&exposure, 1_000).refused(1_000);
        let trial = record.trial.unwrap();
        let row = of_trial(&experiment, "e:s", &trial, 2_000).unwrap();
        assert_eq!((row.arm, row.decisions, row.failures, row.offline_ms), (1, 1, 1, 1_000));
        assert_eq!(row.values, [0.0, 1_000.0, 1.0, 0.0, 1_000.0, 1.0].map(Some));
        assert!(row.unit("d").fits(2, outcomes(Slot::Settle).len()));
        assert!(!row.is_final(&experiment, 65_999) && row.is_final(&experiment, 66_000));
        assert_eq!(of_trial(&experiment, "e:t", &trial, 2_000), None);
    }
}
