//! Looks at the units all the time: what became of those whose horizon is over is noted for good, and an experiment whose treatment
//! crosses a guardrail ends at once. One replica at a time does so, whoever has the turn; it rests nine times as long as it worked, but
//! a second at most.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use pointwork_core::experiment::{Experiment, Experiments as Known, Outcomes, Status, Tally};
use tokio::time::{Instant, sleep};

use super::{
    ExperimentError, Experiments,
    rows::{Found, LATE_MS},
    store::{Row, StoreError, UNITS_MAX},
};
use crate::driver::clock::unix_ms;

/// How often units are looked at while there are some whose horizon lasts, and how often else.
const OFTEN: Duration = Duration::from_millis(500);
const SELDOM: Duration = Duration::from_secs(1);
/// For each span of work so many of rest, up to a longest rest.
const REST_FACTOR: u32 = 9;
const REST_MAX: Duration = Duration::from_secs(1);
/// How often the turn is renewed.
const RENEW: Duration = Duration::from_secs(1);
/// For so long after the last horizon of an experiment that is over its units are looked at, should the store have been away. In
/// milliseconds.
const AFTER_MS: u64 = 3_600_000;
/// So much is looked at again each time: the store's clock may go back, or another store take its place. In milliseconds.
const BEHIND_MS: u64 = 10_000;
/// How long a unit is looked for that has no trial: its decision was not written.
const UNSEEN: Duration = Duration::from_secs(60);

/// What is known of an experiment's units.
#[derive(Default)]
struct Seen {
    /// The latest look for new ones, by the store's clock; 0 before the first.
    since_ms: u64,
    open: BTreeMap<String, Open>,
    over: BTreeSet<String>,
    /// Of those that are over, by arm.
    tallies: BTreeMap<usize, Tally>,
    /// Those of which something beyond the observation may be found, since they were announced.
    watched: BTreeMap<String, Instant>,
    /// What a treatment did beyond the observation of a unit; kept for another horizon when its own is over.
    guards: BTreeMap<String, Row>,
}

struct Open {
    since: Instant,
    row: Option<Row>,
}

pub(super) async fn run(experiments: Arc<Experiments>) {
    loop {
        let has_some = experiments.state.lock().known.as_ref().is_some_and(|known| !known.list.is_empty());
        if has_some && turn(&experiments).await == Ok(true) {
            tokio::select! {
                () = look_on(&experiments) => {}
                () = lost(&experiments) => {}
            }
        }
        sleep(SELDOM).await;
    }
}

/// Takes or renews the turn.
async fn turn(experiments: &Experiments) -> Result<bool, StoreError> {
    experiments.store.lease(experiments.replicas.cluster().uid()).await
}

/// Renews the turn, whatever a look or a rest takes, until another replica has it. While the store is away nobody takes it.
async fn lost(experiments: &Experiments) {
    while turn(experiments).await != Ok(false) {
        sleep(RENEW).await;
    }
}

/// Looks at the units as long as there are experiments.
async fn look_on(experiments: &Experiments) {
    let (mut seen, mut troubled) = (BTreeMap::new(), BTreeSet::new());
    loop {
        let began = Instant::now();
        let known = experiments.state.lock().known.clone().unwrap_or_default();
        if known.list.is_empty() {
            return;
        }
        look_at_all(experiments, &known, &mut seen, &mut troubled).await;
        let is_open = seen.values().any(|seen| !seen.open.is_empty() || !seen.watched.is_empty());
        let pause = if is_open { OFTEN } else { SELDOM };
        sleep(pause.max((began.elapsed() * REST_FACTOR).min(REST_MAX))).await;
    }
}

/// What is wrong with one experiment keeps nobody from the others. `troubled`: those of which that has been said.
async fn look_at_all(
    experiments: &Experiments,
    known: &Known,
    seen: &mut BTreeMap<String, Seen>,
    troubled: &mut BTreeSet<String>,
) {
    let now_ms = unix_ms();
    let those = || known.list.iter().filter(|experiment| is_looked_at(experiment, now_ms));
    seen.retain(|id, _| those().any(|experiment| experiment.id() == *id));
    troubled.retain(|id| those().any(|experiment| experiment.id() == *id));
    for experiment in those() {
        let id = experiment.id();
        match look_at(experiments, experiment, &id, seen).await {
            Ok(()) => _ = troubled.remove(&id),
            Err(error) => {
                if troubled.insert(id) {
                    let name = &experiment.name;
                    tracing::warn!(experiment = name, %error, "the units of an experiment cannot be looked at");
                }
            }
        }
    }
}

/// Whether anything of an experiment can still change.
fn is_looked_at(experiment: &Experiment, now_ms: u64) -> bool {
    let lasts_ms = u64::from(experiment.horizon_ms) + AFTER_MS;
    !experiment.shadow_only && experiment.ended_ms.is_none_or(|ended_ms| now_ms < ended_ms.saturating_add(lasts_ms))
}

async fn look_at(
    experiments: &Experiments,
    experiment: &Experiment,
    id: &str,
    seen: &mut BTreeMap<String, Seen>,
) -> Result<(), ExperimentError> {
    if !seen.contains_key(id) {
        seen.insert(id.to_owned(), begin(experiments, experiment, id).await?);
    }
    match seen.get_mut(id) {
        Some(seen) => look(experiments, experiment, id, seen).await,
        None => Ok(()),
    }
}

/// Takes over from whoever had the turn before.
async fn begin(experiments: &Experiments, experiment: &Experiment, id: &str) -> Result<Seen, ExperimentError> {
    let mut seen = Seen::default();
    for (unit, row) in experiments.store.finished(id).await? {
        count(&mut seen.tallies, experiment, &row);
        seen.over.insert(unit);
    }
    Ok(seen)
}

async fn look(
    experiments: &Experiments,
    experiment: &Experiment,
    id: &str,
    seen: &mut Seen,
) -> Result<(), ExperimentError> {
    let now_ms = unix_ms();
    find(experiments, experiment, id, seen).await?;
    let units: Vec<String> =
        seen.open.keys().chain(seen.watched.keys().filter(|unit| !seen.open.contains_key(*unit))).cloned().collect();
    if units.is_empty() {
        return Ok(());
    }
    let rows = experiments.rows(experiment, &units).await?;
    let mut over = Vec::new();
    for (unit, Found { row, guard }) in units.into_iter().zip(rows) {
        seen.beyond(experiment, &unit, guard, now_ms);
        let Some(open) = seen.open.get_mut(&unit) else { continue };
        let unseen_max = UNSEEN + Duration::from_millis(u64::from(experiment.horizon_ms) + LATE_MS);
        match (row, &open.row) {
            (Some(row), _) if row.is_final(experiment, now_ms) => over.push((unit, row)),
            (Some(row), _) => open.row = Some(row),
            // Its record is gone, or another experiment's.
            (None, Some(last)) => over.push((unit, last.emptied())),
            (None, None) if open.since.elapsed() > unseen_max => _ = seen.open.remove(&unit),
            (None, None) => {}
        }
    }
    experiments.store.finish(id, &over).await?;
    for (unit, row) in over {
        count(&mut seen.tallies, experiment, &row);
        seen.open.remove(&unit);
        seen.over.insert(unit);
    }
    if experiment.status == Status::Running {
        guard(experiments, experiment, seen).await?;
    }
    Ok(())
}

/// Looks for units that were announced since the last look.
async fn find(
    experiments: &Experiments,
    experiment: &Experiment,
    id: &str,
    seen: &mut Seen,
) -> Result<(), ExperimentError> {
    let is_first = seen.since_ms == 0;
    let found = experiments.store.exposed(id, seen.since_ms.saturating_sub(BEHIND_MS)).await?;
    let mut announced = Vec::new();
    for unit in found.units {
        if seen.over.contains(&unit) {
            announced.push(unit);
        } else if seen.open.len() + seen.over.len() < UNITS_MAX {
            seen.open.entry(unit).or_insert_with(|| Open { since: Instant::now(), row: None });
        }
    }
    if is_first {
        // All there are: of those that are over something is to be found only if they were announced within a horizon.
        announced = recent(experiments, experiment, id, found.now_ms).await?;
        announced.retain(|unit| seen.over.contains(unit));
    }
    seen.since_ms = found.now_ms;
    if experiment.status == Status::Running {
        seen.watched.extend(announced.into_iter().map(|unit| (unit, Instant::now())));
    }
    Ok(())
}

/// The units of which something beyond their observation may still be found. `now_ms`: by the store's clock.
pub(super) async fn recent(
    experiments: &Experiments,
    experiment: &Experiment,
    id: &str,
    now_ms: u64,
) -> Result<Vec<String>, ExperimentError> {
    let within_ms = u64::from(experiment.horizon_ms) + LATE_MS + BEHIND_MS;
    let found = experiments.store.exposed(id, now_ms.saturating_sub(within_ms)).await?;
    Ok(found.units.into_iter().collect())
}

impl Seen {
    /// Notes what was found of a unit beyond its observation.
    fn beyond(&mut self, experiment: &Experiment, unit: &str, guard: Option<Row>, now_ms: u64) {
        let lasts = guard.as_ref().is_some_and(|row| !row.is_final(experiment, now_ms));
        if let Some(row) = guard {
            self.guards.insert(unit.to_owned(), row);
        }
        if lasts {
            self.watched.entry(unit.to_owned()).or_insert_with(Instant::now);
        } else if self.watched.get(unit).is_some_and(|since| since.elapsed() > UNSEEN) {
            // What it was announced for was not written, or is over: the next is announced again.
            self.watched.remove(unit);
        }
    }
}

/// Ends the experiment if a treatment has crossed a guardrail.
async fn guard(experiments: &Experiments, experiment: &Experiment, seen: &mut Seen) -> Result<(), ExperimentError> {
    let (horizon_ms, now_ms) = (u64::from(experiment.horizon_ms), unix_ms());
    seen.guards.retain(|_, row| now_ms < row.exposed_ms + 2 * horizon_ms + LATE_MS);
    let mut beyond = BTreeMap::new();
    for row in seen.guards.values() {
        count(&mut beyond, experiment, row);
    }
    let mut tallies = seen.tallies.clone();
    for row in seen.open.values().filter_map(|open| open.row.as_ref()) {
        count(&mut tallies, experiment, row);
    }
    let treatments = experiment.arms.iter().enumerate().skip(1);
    let crossed = treatments.into_iter().find_map(|(index, arm)| {
        let of = |tallies: &BTreeMap<usize, Tally>| tallies.get(&index).copied().unwrap_or_default();
        let crossed = experiment.guardrails.crossed_by_any(&of(&tallies), &of(&beyond))?;
        Some((arm.name.clone(), crossed))
    });
    let Some((arm, crossed)) = crossed else { return Ok(()) };
    let name = &experiment.name;
    let ended = experiments.change(name, |known| Ok(known.guardrail(name, &arm, &crossed, now_ms)?)).await;
    match ended {
        Ok(_) => {
            let guardrail = crossed.guardrail.as_str();
            metrics::counter!("pointwork_experiment_guardrail_total", "guardrail" => guardrail).increment(1);
            tracing::warn!(experiment = name, arm, guardrail, "an experiment ends by a guardrail: {crossed}");
            Ok(())
        }
        // Somebody else has just ended it.
        Err(ExperimentError::Change(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

fn count(tallies: &mut BTreeMap<usize, Tally>, experiment: &Experiment, row: &Row) {
    if row.arm < experiment.arms.len() {
        add(tallies.entry(row.arm).or_default(), row);
    }
}

/// Adds a unit.
pub(super) fn add(tally: &mut Tally, row: &Row) {
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    tally.add(&Outcomes {
        decisions: number(row.decisions),
        failures: number(row.failures),
        stranded_ms: row.stranded_ms,
        offline_ms: row.offline_ms,
        ..Outcomes::default()
    });
}

#[cfg(test)]
mod tests {
    use pointwork_core::experiment::{Guardrails, Slot};

    use super::*;

    #[test]
    fn what_has_been_over_for_long_is_not_looked_at() {
        let mut experiment = Experiment {
            name: "e".to_owned(),
            slot: Slot::Settle,
            salt: "s".to_owned(),
            arms: Vec::new(),
            weights: Vec::new(),
            status: Status::Paused,
            shadow_only: false,
            horizon_ms: 60_000,
            window_ms: 2_500,
            silence_ms: 25_000,
            guardrails: Guardrails::default(),
            created_ms: 0,
            ended_ms: None,
            version: 1,
        };
        assert!(is_looked_at(&experiment, u64::MAX), "its units have a horizon, too");
        experiment.ended_ms = Some(1_000);
        assert!(is_looked_at(&experiment, 61_000 + AFTER_MS - 1) && !is_looked_at(&experiment, 61_000 + AFTER_MS));
        experiment.shadow_only = true;
        assert!(!is_looked_at(&experiment, 1_000));
    }
}
