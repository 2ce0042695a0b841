//! Shows experiments to operators, as JSON.

use pointwork_core::experiments::{Experiment, ExperimentStatus};
use serde_json::{Value, json};

use super::{error::ExperimentError, load_arms::engine_name, state::Experiments, store::UNITS_MAX};

impl Experiments {
    /// Shows an experiment, and how this replica carries it out.
    #[must_use]
    pub fn show(&self, experiment: &Experiment) -> Value {
        let state = self.state.lock();
        let running = self.policies.assignments().running(experiment.slot);
        let is_running = running.is_some_and(|running| *running.id == *experiment.id());
        let problems: Vec<Value> = (0..experiment.arms.len())
            .filter_map(|arm| {
                let (why, _) = state.failed.get(&engine_name(experiment, arm)?)?;
                Some(json!({ "arm": experiment.arms.get(arm)?.name, "error": why }))
            })
            .collect();
        let note = match &experiment.status {
            ExperimentStatus::Promoted { .. } if self.rollouts().is_some() => {
                Some("it was pushed: `pointwork policy status` says where it serves")
            }
            ExperimentStatus::Promoted { .. } => Some(
                "it serves on replicas that start later too, until a file of the slot in the policy directory is written: put its file \
                 there to keep it",
            ),
            _ => None,
        };
        let (reason, guardrail, promoted) = match &experiment.status {
            ExperimentStatus::Aborted { reason, guardrail } => (Some(reason), guardrail.as_ref(), None),
            ExperimentStatus::Promoted { arm } => (None, None, Some(arm)),
            _ => (None, None, None),
        };
        let arms = experiment.arms.iter().zip(&experiment.weights);
        json!({
            "name": experiment.name,
            "slot": experiment.slot,
            "salt": experiment.salt,
            "arms": arms.map(|(arm, weight)| json!({ "name": arm.name, "module": arm.module, "weight": weight })).collect::<Vec<_>>(),
            "status": experiment.status.as_str(),
            "reason": reason,
            "guardrail": guardrail,
            "promoted": promoted,
            "shadow_only": experiment.shadow_only,
            "horizon_ms": experiment.horizon_ms,
            "window_ms": experiment.window_ms,
            "guardrails": experiment.guardrails,
            "created_ms": experiment.created_ms,
            "ended_ms": experiment.ended_ms,
            "version": experiment.version,
            "note": note,
            "here": {
                "decides": is_running,
                "problems": problems,
                "promotion": state.promoted.get(&experiment.id()).map(|promotion| &promotion.outcome),
            },
        })
    }

    /// Shows all experiments, newest first, and the problems of this replica with them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list(&self) -> Result<Value, ExperimentError> {
        let known = self.store.read().await?;
        let experiments: Vec<Value> = known.list.iter().rev().map(|experiment| self.show(experiment)).collect();
        let (dropped, shadows_dropped) = self.outbox.dropped();
        let units_lost = self.state.lock().refused + dropped;
        let error = self.state.lock().error.clone();
        Ok(json!({
            "version": known.version,
            "experiments": experiments,
            "units_max": UNITS_MAX,
            "units_lost": units_lost,
            "shadows_lost": shadows_dropped,
            "error": error,
        }))
    }
}
