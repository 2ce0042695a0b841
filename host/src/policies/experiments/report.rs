//! Reports an experiment: the results of its units so far, and the statistics over them.

use pointwork_core::experiments::{Arm, Experiment, ExperimentStatus, Tally};
use pointwork_statistics::{Disagreement, ExperimentReport, GuardrailReading, Study, report};

use super::{
    error::ExperimentError,
    rows::{LATE_MS, outcomes},
    state::Experiments,
    store::UnitRow,
    unit_tracker::{add, recent},
};
use crate::driver::clock::unix_ms;

impl Experiments {
    /// Reports what an experiment has measured so far.
    ///
    /// # Errors
    /// When there is no experiment with this name, or the store fails.
    pub async fn report(&self, name: &str) -> Result<ExperimentReport, ExperimentError> {
        let experiment = self.get(name).await?;
        let id = experiment.id();
        let mut rows = self.store.finished(&id).await?;
        let exposed = self.store.exposed(&id, 0).await?;
        let mut open: Vec<String> = exposed.units.into_iter().filter(|unit| !rows.contains_key(unit)).collect();
        let recent = recent(self, &experiment, exposed.now_ms).await?;
        open.extend(recent.into_iter().filter(|unit| rows.contains_key(unit)));
        let mut guards = Vec::new();
        for (unit, result) in open.iter().zip(self.results(&experiment, &open).await?) {
            guards.extend(result.guard);
            if let Some(row) = result.row.filter(|_| !rows.contains_key(unit)) {
                rows.insert(unit.clone(), row);
            }
        }
        let units: Vec<_> = rows.iter().map(|(unit, row)| row.unit(unit)).collect();
        let arms: Vec<String> = experiment.arms.iter().map(|arm| arm.name.clone()).collect();
        let guardrails = guardrails(&experiment, rows.values(), &guards);
        let cells = self.store.cells(&id).await?;
        let shadow: Vec<_> = cells
            .into_iter()
            .map(|(cell, count)| Disagreement { arm: cell.arm, served: cell.served, shadow: cell.shadow, count })
            .collect();
        Ok(report(&Study {
            name,
            slot: experiment.slot.as_str(),
            arms: &arms,
            outcomes: &outcomes(experiment.slot),
            units: &units,
            horizon_ms: experiment.horizon_ms.into(),
            // Everything up to this moment has been written.
            now_ms: unix_ms().saturating_sub(LATE_MS),
            guardrails: &guardrails,
            shadow: &shadow,
        }))
    }
}

/// The state of the treatments' guardrails. It is the worse one of the observed results and of the results outside the observation;
/// the latter count only if there are enough of them.
fn guardrails<'a>(
    experiment: &Experiment,
    rows: impl Iterator<Item = &'a UnitRow>,
    guards: &[UnitRow],
) -> Vec<GuardrailReading> {
    let mut tallies = vec![(Tally::default(), Tally::default()); experiment.arms.len()];
    let all = rows.map(|row| (row, true)).chain(guards.iter().map(|row| (row, false)));
    for (row, is_observed) in all {
        if let Some((observed, outside)) = tallies.get_mut(row.arm) {
            add(if is_observed { observed } else { outside }, row);
        }
    }
    let limits = &experiment.guardrails;
    let (units_min, decisions_min) = (u64::from(limits.units_min), u64::from(limits.decisions_min));
    let mean = |sum: u64, of: u64| if of > 0 { sum as f64 / of as f64 } else { 0.0 };
    let worse = |(observed, outside): &(Tally, Tally), sums: fn(&Tally) -> (u64, u64), min: u64| {
        let ((sum, of), (outside_sum, outside_of)) = (sums(observed), sums(outside));
        let mean_observed = mean(sum, of);
        if outside_of >= min { mean_observed.max(mean(outside_sum, outside_of)) } else { mean_observed }
    };
    let crossed = |name: &str, arm: &str| match &experiment.status {
        ExperimentStatus::Aborted { guardrail: Some(guardrail), reason } => {
            let is_it = guardrail.as_str() == name && reason.starts_with(&format!("guardrail: {arm}:"));
            experiment.ended_ms.filter(|_| is_it)
        }
        _ => None,
    };
    let of = |(arm, tallies): (&Arm, &(Tally, Tally))| {
        let stranded = worse(tallies, |tally| (tally.stranded_ms, tally.units), units_min);
        let failures = worse(tallies, |tally| (tally.failures, tally.decisions), decisions_min);
        let offline = worse(tallies, |tally| (tally.offline_ms, tally.units), units_min);
        let values = [
            ("stranded", stranded, limits.stranded_ms_mean_max),
            ("failures", failures, limits.failures_share_max),
            ("offline", offline, limits.offline_ms_mean_max),
        ];
        let arm = arm.name.clone();
        values.into_iter().filter_map(move |(name, value, limit)| {
            let crossed_ms = crossed(name, &arm);
            Some(GuardrailReading { name: name.to_owned(), arm: arm.clone(), value, limit: limit?, crossed_ms })
        })
    };
    experiment.arms.iter().zip(&tallies).skip(1).flat_map(of).collect()
}
