//! The report of an experiment: its units as they are now, and the statistics over them.

use pointwork_core::experiment::{Experiment, Status, Tally};

use super::{
    ExperimentError, Experiments, evaluate,
    rows::{LATE_MS, outcomes},
    store::Row,
};
use crate::driver::clock::unix_ms;
use pointwork_statistics::{Disagreement, Guardrail, Report, Study, report};

impl Experiments {
    /// What an experiment did so far.
    ///
    /// # Errors
    /// When there is none of that name, or the store is away.
    pub async fn report(&self, name: &str) -> Result<Report, ExperimentError> {
        let experiment = self.get(name).await?;
        let id = experiment.id();
        let mut rows = self.store.finished(&id).await?;
        let exposed = self.store.exposed(&id, 0).await?;
        let mut looked: Vec<String> = exposed.units.into_iter().filter(|unit| !rows.contains_key(unit)).collect();
        let recent = evaluate::recent(self, &experiment, &id, exposed.now_ms).await?;
        looked.extend(recent.into_iter().filter(|unit| rows.contains_key(unit)));
        let mut beyond = Vec::new();
        for (unit, found) in looked.iter().zip(self.rows(&experiment, &looked).await?) {
            beyond.extend(found.guard);
            if let Some(row) = found.row.filter(|_| !rows.contains_key(unit)) {
                rows.insert(unit.clone(), row);
            }
        }
        let units: Vec<_> = rows.iter().map(|(unit, row)| row.unit(unit)).collect();
        let arms: Vec<String> = experiment.arms.iter().map(|arm| arm.name.clone()).collect();
        let guardrails = guardrails(&experiment, rows.values(), &beyond);
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
            // As of a moment of which all is known.
            now_ms: unix_ms().saturating_sub(LATE_MS),
            guardrails: &guardrails,
            shadow: &shadow,
        }))
    }
}

/// Where the guardrails of the treatments stand: by what was observed, or by what was found beyond that if it is worse and says
/// anything.
fn guardrails<'a>(experiment: &Experiment, rows: impl Iterator<Item = &'a Row>, beyond: &[Row]) -> Vec<Guardrail> {
    let mut tallies = vec![(Tally::default(), Tally::default()); experiment.arms.len()];
    for row in rows {
        if let Some((observed, _)) = tallies.get_mut(row.arm) {
            evaluate::add(observed, row);
        }
    }
    for row in beyond {
        if let Some((_, beyond)) = tallies.get_mut(row.arm) {
            evaluate::add(beyond, row);
        }
    }
    let limits = &experiment.guardrails;
    let (units_min, decisions_min) = (u64::from(limits.units_min), u64::from(limits.decisions_min));
    let mean = |sum: u64, of: u64| if of > 0 { sum as f64 / of as f64 } else { 0.0 };
    let worse = |(observed, beyond): &(Tally, Tally), sums: fn(&Tally) -> (u64, u64), min: u64| {
        let ((sum, of), (beyond_sum, beyond_of)) = (sums(observed), sums(beyond));
        let found = mean(sum, of);
        if beyond_of >= min { found.max(mean(beyond_sum, beyond_of)) } else { found }
    };
    let crossed = |name: &str, arm: &str| match &experiment.status {
        Status::Aborted { guardrail: Some(guardrail), reason } => {
            let is_it = guardrail.as_str() == name && reason.starts_with(&format!("guardrail: {arm}:"));
            experiment.ended_ms.filter(|_| is_it)
        }
        _ => None,
    };
    let of = |(arm, tallies): (&pointwork_core::experiment::Arm, &(Tally, Tally))| {
        let stranded = worse(tallies, |tally| (tally.stranded_ms, tally.units), units_min);
        let failures = worse(tallies, |tally| (tally.failures, tally.decisions), decisions_min);
        let offline = worse(tallies, |tally| (tally.offline_ms, tally.units), units_min);
        let found = [
            ("stranded", stranded, limits.stranded_ms_mean_max),
            ("failures", failures, limits.failures_share_max),
            ("offline", offline, limits.offline_ms_mean_max),
        ];
        let arm = arm.name.clone();
        found.into_iter().filter_map(move |(name, value, limit)| {
            let crossed_ms = crossed(name, &arm);
            Some(Guardrail { name: name.to_owned(), arm: arm.clone(), value, limit: limit?, crossed_ms })
        })
    };
    experiment.arms.iter().zip(&tallies).skip(1).flat_map(of).collect()
}
