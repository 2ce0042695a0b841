//! The report of an experiment: its units as they are now, and the statistics over them.

use pointwork_core::experiment::{Experiment, Status, Tally};

use super::{
    ExperimentError, Experiments, evaluate,
    rows::{LATE_MS, outcomes},
    store::Row,
};
use crate::{
    clock::unix_ms,
    statistics::{Disagreement, Guardrail, Report, Study, report},
};

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
        let open: Vec<String> = exposed.into_iter().filter(|unit| !rows.contains_key(unit)).collect();
        let known = self.rows(&experiment, &open).await?;
        rows.extend(open.into_iter().zip(known).filter_map(|(unit, row)| Some((unit, row?))));
        let units: Vec<_> = rows.iter().map(|(unit, row)| row.unit(unit)).collect();
        let arms: Vec<String> = experiment.arms.iter().map(|arm| arm.name.clone()).collect();
        let guardrails = guardrails(&experiment, rows.values());
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

/// Where the guardrails of the treatments stand.
fn guardrails<'a>(experiment: &Experiment, rows: impl Iterator<Item = &'a Row>) -> Vec<Guardrail> {
    let mut tallies = vec![Tally::default(); experiment.arms.len()];
    for row in rows {
        if let Some(tally) = tallies.get_mut(row.arm) {
            evaluate::add(tally, row);
        }
    }
    let limits = &experiment.guardrails;
    let mean = |sum: u64, of: u64| if of > 0 { sum as f64 / of as f64 } else { 0.0 };
    let crossed = |name: &str, arm: &str| match &experiment.status {
        Status::Aborted { guardrail: Some(guardrail), reason } => {
            let is_it = guardrail.as_str() == name && reason.starts_with(&format!("guardrail: {arm}:"));
            experiment.ended_ms.filter(|_| is_it)
        }
        _ => None,
    };
    let of = |(arm, tally): (&pointwork_core::experiment::Arm, &Tally)| {
        let found = [
            ("stranded", mean(tally.stranded_ms, tally.units), limits.stranded_ms_mean_max),
            ("failures", mean(tally.failures, tally.decisions), limits.failures_share_max),
            ("offline", mean(tally.offline_ms, tally.units), limits.offline_ms_mean_max),
        ];
        let arm = arm.name.clone();
        found.into_iter().filter_map(move |(name, value, limit)| {
            let crossed_ms = crossed(name, &arm);
            Some(Guardrail { name: name.to_owned(), arm: arm.clone(), value, limit: limit?, crossed_ms })
        })
    };
    experiment.arms.iter().zip(&tallies).skip(1).flat_map(of).collect()
}
