//! Evaluates the units of all experiments, on one replica at a time: whichever has the turn. It rests nine times as long as it
//! worked, but a second at most.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use pointwork_core::experiments::{Experiment, Experiments as ExperimentList};
use tokio::time::{Instant, sleep};

use super::{state::Experiments, store::ExperimentStoreError, unit_tracker::UnitTracker};
use crate::driver::clock::unix_ms;

/// The pause between two checks while a unit's horizon lasts.
const PAUSE_WITH_OPEN_UNITS: Duration = Duration::from_millis(500);
/// The pause between two checks at other times.
const PAUSE: Duration = Duration::from_secs(1);
/// How many times longer it rests than it worked.
const REST_FACTOR: u32 = 9;
const REST_MAX: Duration = Duration::from_secs(1);
/// How often the turn is renewed.
const RENEW: Duration = Duration::from_secs(1);
/// The units of an experiment are checked for this long after its last horizon, because the store can be away. In milliseconds.
const AFTER_MS: u64 = 3_600_000;

pub(super) async fn run(experiments: Arc<Experiments>) {
    loop {
        let has_some = experiments.state.lock().known.as_ref().is_some_and(|known| !known.list.is_empty());
        if has_some && take_turn(&experiments).await == Ok(true) {
            tokio::select! {
                () = evaluate_all(&experiments) => {}
                () = keep_turn(&experiments) => {}
            }
        }
        sleep(PAUSE).await;
    }
}

/// Takes or renews the turn.
async fn take_turn(experiments: &Experiments) -> Result<bool, ExperimentStoreError> {
    experiments.store.lease(experiments.replicas.cluster().uid()).await
}

/// Renews the turn until another replica has it. While the store is away, no replica can take it.
async fn keep_turn(experiments: &Experiments) {
    while take_turn(experiments).await != Ok(false) {
        sleep(RENEW).await;
    }
}

/// Evaluates the units as long as there are experiments.
async fn evaluate_all(experiments: &Experiments) {
    let mut trackers: BTreeMap<String, UnitTracker> = BTreeMap::new();
    loop {
        let began = Instant::now();
        let known = experiments.state.lock().known.clone().unwrap_or_default();
        if known.list.is_empty() {
            return;
        }
        evaluate_once(experiments, &known, &mut trackers).await;
        let pause = if trackers.values().any(UnitTracker::is_open) { PAUSE_WITH_OPEN_UNITS } else { PAUSE };
        sleep(pause.max((began.elapsed() * REST_FACTOR).min(REST_MAX))).await;
    }
}

/// Evaluates each experiment; a failure of one does not stop the others.
async fn evaluate_once(
    experiments: &Experiments,
    known: &ExperimentList,
    trackers: &mut BTreeMap<String, UnitTracker>,
) {
    let now_ms = unix_ms();
    let evaluated = || known.list.iter().filter(|experiment| can_change(experiment, now_ms));
    trackers.retain(|id, _| evaluated().any(|experiment| experiment.id() == *id));
    for experiment in evaluated() {
        let tracker = trackers.entry(experiment.id()).or_default();
        let evaluated = tracker.evaluate(experiments, experiment).await;
        let was_failing = std::mem::replace(&mut tracker.is_failing, evaluated.is_err());
        if let Err(error) = evaluated
            && !was_failing
        {
            let name = &experiment.name;
            tracing::warn!(experiment = name, %error, "the units of an experiment cannot be looked at");
        }
    }
}

/// Whether the results of an experiment can still change.
fn can_change(experiment: &Experiment, now_ms: u64) -> bool {
    let lasts_ms = u64::from(experiment.horizon_ms) + AFTER_MS;
    !experiment.shadow_only && experiment.ended_ms.is_none_or(|ended_ms| now_ms < ended_ms.saturating_add(lasts_ms))
}

#[cfg(test)]
mod tests {
    use pointwork_core::experiments::{ExperimentStatus, Guardrails, Slot};

    use super::*;

    #[test]
    fn an_experiment_is_no_longer_evaluated_an_hour_after_its_last_horizon() {
        let mut experiment = Experiment {
            name: "e".to_owned(),
            slot: Slot::Settle,
            salt: "s".to_owned(),
            arms: Vec::new(),
            weights: Vec::new(),
            status: ExperimentStatus::Paused,
            shadow_only: false,
            horizon_ms: 60_000,
            window_ms: 2_500,
            silence_ms: 25_000,
            guardrails: Guardrails::default(),
            created_ms: 0,
            ended_ms: None,
            version: 1,
        };
        assert!(can_change(&experiment, u64::MAX), "the horizons of its units last");
        experiment.ended_ms = Some(1_000);
        assert!(can_change(&experiment, 61_000 + AFTER_MS - 1) && !can_change(&experiment, 61_000 + AFTER_MS));
        experiment.shadow_only = true;
        assert!(!can_change(&experiment, 1_000));
    }
}
