//! Follows the units of one experiment: stores the final results of units whose horizon is over, and ends the experiment when a
//! treatment crosses a guardrail.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use pointwork_core::experiments::{Experiment, ExperimentStatus, Outcomes, Tally};
use tokio::time::Instant;

use super::{
    error::ExperimentError,
    rows::{LATE_MS, UnitResult},
    state::Experiments,
    store::{UNITS_MAX, UnitRow},
};
use crate::driver::clock::unix_ms;

/// Each search for new units begins this long before the last one, because the store's clock may go back, or another store may
/// replace it. In milliseconds.
const OVERLAP_MS: u64 = 10_000;
/// How long a unit without a trial is tracked: its decision may never have been written.
const UNSEEN_MAX: Duration = Duration::from_secs(60);

/// What the evaluating replica knows of the units of one experiment.
#[derive(Default)]
pub(super) struct UnitTracker {
    /// Whether the last evaluation failed.
    pub(super) is_failing: bool,
    /// Whether the finished units were read, which the replica that had the turn before has stored.
    is_begun: bool,
    /// When new units were last searched, by the store's clock; 0 before the first search.
    since_ms: u64,
    open: BTreeMap<String, OpenUnit>,
    finished: BTreeSet<String>,
    /// By arm: the sums of the finished units.
    tallies: BTreeMap<usize, Tally>,
    /// Units that may have results outside their observation, and when they were announced.
    watched: BTreeMap<String, Instant>,
    /// What treatments did outside the observation of a unit. Kept for another horizon after the unit's own.
    guards: BTreeMap<String, UnitRow>,
}

/// A unit whose horizon lasts.
struct OpenUnit {
    since: Instant,
    row: Option<UnitRow>,
}

impl UnitTracker {
    /// Whether there are units whose results change.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty() || !self.watched.is_empty()
    }

    /// Reads the results of all units that may have changed, stores final ones, and checks the guardrails.
    pub(super) async fn evaluate(
        &mut self,
        experiments: &Experiments,
        experiment: &Experiment,
    ) -> Result<(), ExperimentError> {
        if !self.is_begun {
            self.add_finished(experiment, experiments.store.finished(&experiment.id()).await?);
            self.is_begun = true;
        }
        let now_ms = unix_ms();
        self.find_new(experiments, experiment).await?;
        let watched = self.watched.keys().filter(|unit| !self.open.contains_key(*unit));
        let units: Vec<String> = self.open.keys().chain(watched).cloned().collect();
        if units.is_empty() {
            return Ok(());
        }
        let results = experiments.results(experiment, &units).await?;
        let mut finished = Vec::new();
        for (unit, UnitResult { row, guard }) in units.into_iter().zip(results) {
            self.note_guard(experiment, &unit, guard, now_ms);
            let Some(open) = self.open.get_mut(&unit) else { continue };
            let unseen_max = UNSEEN_MAX + Duration::from_millis(u64::from(experiment.horizon_ms) + LATE_MS);
            match (row, &open.row) {
                (Some(row), _) if row.is_final(experiment, now_ms) => finished.push((unit, row)),
                (Some(row), _) => open.row = Some(row),
                // Its record is gone, or belongs to another experiment.
                (None, Some(last)) => finished.push((unit, last.emptied())),
                (None, None) if open.since.elapsed() > unseen_max => _ = self.open.remove(&unit),
                (None, None) => {}
            }
        }
        experiments.store.finish(&experiment.id(), &finished).await?;
        self.add_finished(experiment, finished);
        if experiment.status == ExperimentStatus::Running {
            self.check_guardrails(experiments, experiment).await
        } else {
            Ok(())
        }
    }

    fn add_finished(&mut self, experiment: &Experiment, rows: impl IntoIterator<Item = (String, UnitRow)>) {
        for (unit, row) in rows {
            count(&mut self.tallies, experiment, &row);
            self.open.remove(&unit);
            self.finished.insert(unit);
        }
    }

    /// Finds units that were announced since the last search.
    async fn find_new(&mut self, experiments: &Experiments, experiment: &Experiment) -> Result<(), ExperimentError> {
        let is_first = self.since_ms == 0;
        let since_ms = self.since_ms.saturating_sub(OVERLAP_MS);
        let exposed = experiments.store.exposed(&experiment.id(), since_ms).await?;
        let mut announced = Vec::new();
        for unit in exposed.units {
            if self.finished.contains(&unit) {
                announced.push(unit);
            } else if self.open.len() + self.finished.len() < UNITS_MAX {
                self.open.entry(unit).or_insert_with(|| OpenUnit { since: Instant::now(), row: None });
            }
        }
        if is_first {
            // The first search finds all units. Of the finished ones, only those announced within a horizon can have new results.
            announced = recent(experiments, experiment, exposed.now_ms).await?;
            announced.retain(|unit| self.finished.contains(unit));
        }
        self.since_ms = exposed.now_ms;
        if experiment.status == ExperimentStatus::Running {
            self.watched.extend(announced.into_iter().map(|unit| (unit, Instant::now())));
        }
        Ok(())
    }

    /// Notes what a treatment did outside the observation of a unit.
    fn note_guard(&mut self, experiment: &Experiment, unit: &str, guard: Option<UnitRow>, now_ms: u64) {
        let lasts = guard.as_ref().is_some_and(|row| !row.is_final(experiment, now_ms));
        if let Some(row) = guard {
            self.guards.insert(unit.to_owned(), row);
        }
        if lasts {
            self.watched.entry(unit.to_owned()).or_insert_with(Instant::now);
        } else if self.watched.get(unit).is_some_and(|since| since.elapsed() > UNSEEN_MAX) {
            // What was announced was not written, or is over. A new decision announces the unit again.
            self.watched.remove(unit);
        }
    }

    /// Ends the experiment if a treatment has crossed a guardrail.
    async fn check_guardrails(
        &mut self,
        experiments: &Experiments,
        experiment: &Experiment,
    ) -> Result<(), ExperimentError> {
        let (horizon_ms, now_ms) = (u64::from(experiment.horizon_ms), unix_ms());
        self.guards.retain(|_, row| now_ms < row.exposed_ms + 2 * horizon_ms + LATE_MS);
        let mut outside = BTreeMap::new();
        self.guards.values().for_each(|row| count(&mut outside, experiment, row));
        let mut tallies = self.tallies.clone();
        self.open.values().filter_map(|open| open.row.as_ref()).for_each(|row| count(&mut tallies, experiment, row));
        let crossed = experiment.arms.iter().enumerate().skip(1).find_map(|(index, arm)| {
            let of = |tallies: &BTreeMap<usize, Tally>| tallies.get(&index).copied().unwrap_or_default();
            let crossed = experiment.guardrails.crossed_by_any(&of(&tallies), &of(&outside))?;
            Some((arm.name.clone(), crossed))
        });
        let Some((arm, crossed)) = crossed else { return Ok(()) };
        let name = &experiment.name;
        match experiments.change(name, |known| Ok(known.guardrail(name, &arm, &crossed, now_ms)?)).await {
            Ok(_) => {
                let guardrail = crossed.guardrail.as_str();
                metrics::counter!("pointwork_experiment_guardrail_total", "guardrail" => guardrail).increment(1);
                tracing::warn!(experiment = name, arm, guardrail, "an experiment ends by a guardrail: {crossed}");
                Ok(())
            }
            // The experiment has just ended for another reason.
            Err(ExperimentError::Change(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The units that may have results outside their observation. `now_ms`: by the store's clock.
pub(super) async fn recent(
    experiments: &Experiments,
    experiment: &Experiment,
    now_ms: u64,
) -> Result<Vec<String>, ExperimentError> {
    let within_ms = u64::from(experiment.horizon_ms) + LATE_MS + OVERLAP_MS;
    let exposed = experiments.store.exposed(&experiment.id(), now_ms.saturating_sub(within_ms)).await?;
    Ok(exposed.units.into_iter().collect())
}

fn count(tallies: &mut BTreeMap<usize, Tally>, experiment: &Experiment, row: &UnitRow) {
    if row.arm < experiment.arms.len() {
        add(tallies.entry(row.arm).or_default(), row);
    }
}

/// Adds a unit to a tally.
pub(super) fn add(tally: &mut Tally, row: &UnitRow) {
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    tally.add(&Outcomes {
        decisions: number(row.decisions),
        failures: number(row.failures),
        stranded_ms: row.stranded_ms,
        offline_ms: row.offline_ms,
        ..Outcomes::default()
    });
}
