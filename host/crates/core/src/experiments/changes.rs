//! Creates, changes and ends the experiments of a cluster. All experiments are one value, and each change gives a value
//! with a greater version. Whoever stores the value changes it by compare-and-set on the version, so every replica sees
//! the same changes in the same order.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::bucket::BUCKETS;
use super::experiment::{ARMS_MAX, Experiment, ExperimentStatus, HORIZON_MS_MAX, HORIZON_MS_MIN, NAME_BYTES_MAX, Slot};
use super::guardrail::Crossed;

/// Experiments that are kept at most, those included that are over: of these the oldest makes room that is not the last promoted one
/// of its slot.
pub const EXPERIMENTS_MAX: usize = 32;
/// The longest reason that is kept, in bytes.
const REASON_BYTES_MAX: usize = 512;

/// All experiments.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Experiments {
    /// Grows with every change; 0 if there never was one.
    pub version: u64,
    /// In the order of their creation.
    pub list: Vec<Experiment>,
}

/// Why an experiment is not created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CreateError {
    /// A name of the experiment or an arm is none.
    #[error("{0:?} is no name: 1 to 64 of a-z, 0-9 and -")]
    Name(String),
    /// There is one of that name, over or not.
    #[error("there is an experiment {0:?} already")]
    Taken(String),
    /// The salt is empty, too long, or holds a control character.
    #[error("the salt must have 1 to 64 bytes and no control characters")]
    Salt,
    /// Too few or too many arms, or two of one name.
    #[error("an experiment has 2 to 8 arms with different names, the control first")]
    Arms,
    /// The weights do not fit the arms.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The horizon is too short or too long.
    #[error("the horizon must be 1,000 to 604,800,000 ms")]
    Horizon,
    /// A limit is no number, or negative.
    #[error("a guardrail's limit must be a number that is not negative")]
    Guardrail,
    /// Another one runs in the slot.
    #[error("experiment {running:?} runs in slot {slot}")]
    Busy {
        /// The slot.
        slot: Slot,
        /// What runs in it.
        running: String,
    },
    /// All that are kept are not over, or the last promoted ones of their slots.
    #[error("there are 32 experiments that are not over, or whose treatment serves")]
    TooMany,
}

/// Why weights are refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WeightsError {
    /// Not one for each arm, or their sum is another.
    #[error("there must be a weight for each of {arms} arms, and their sum be 10,000 (100 %)")]
    Sum {
        /// How many arms there are.
        arms: usize,
    },
    /// Another treatment than the last would change its range.
    #[error(
        "of several treatments only the last may change its weight, unless all get 0: the others' units would move"
    )]
    Moves,
}

/// Why an experiment is not changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// There is none of that name.
    #[error("there is no experiment {0:?}")]
    Unknown(String),
    /// It is over.
    #[error("experiment {name:?} is over: {is}")]
    Over {
        /// Its name.
        name: String,
        /// How it is.
        is: &'static str,
    },
    /// Only one that runs can be paused, only a paused one resumed.
    #[error("experiment {name:?} is {is}")]
    Not {
        /// Its name.
        name: String,
        /// How it is.
        is: &'static str,
    },
    /// Another one runs in the slot.
    #[error("experiment {running:?} runs in slot {slot}")]
    Busy {
        /// The slot.
        slot: Slot,
        /// What runs in it.
        running: String,
    },
    /// The weights do not fit.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// It has no arm of that name, or several treatments and none was named.
    #[error("name one of the treatments: {0}")]
    Arm(String),
}

impl Experiments {
    /// The experiment of that name.
    pub fn get(&self, name: &str) -> Option<&Experiment> {
        self.list.iter().find(|experiment| *experiment.name == *name)
    }

    /// The experiment that runs in a slot.
    pub fn running(&self, slot: Slot) -> Option<&Experiment> {
        self.list.iter().find(|experiment| experiment.slot == slot && experiment.status == ExperimentStatus::Running)
    }

    /// The experiment of a slot whose treatment was promoted last.
    pub fn promotion(&self, slot: Slot) -> Option<&Experiment> {
        let of_slot = self.list.iter().filter(|experiment| experiment.slot == slot);
        let promoted = of_slot.filter(|experiment| matches!(experiment.status, ExperimentStatus::Promoted { .. }));
        promoted.max_by_key(|experiment| experiment.version)
    }

    /// Creates an experiment; its status and version are not looked at: it runs.
    ///
    /// # Errors
    /// When it is not sound, its name is taken, or another one runs in its slot.
    pub fn create(&self, experiment: Experiment) -> Result<Experiments, CreateError> {
        sound(&experiment)?;
        if self.get(&experiment.name).is_some() {
            return Err(CreateError::Taken(experiment.name));
        }
        if let Some(running) = self.running(experiment.slot) {
            return Err(CreateError::Busy { slot: experiment.slot, running: running.name.clone() });
        }
        let mut next = self.next();
        if next.list.len() >= EXPERIMENTS_MAX {
            // A replica that starts later is to know what was promoted.
            let serves = |one: &Experiment| self.promotion(one.slot).is_some_and(|last| last.name == one.name);
            let over = next.list.iter().position(|experiment| experiment.status.is_over() && !serves(experiment));
            next.list.remove(over.ok_or(CreateError::TooMany)?);
        }
        let version = next.version;
        next.list.push(Experiment { status: ExperimentStatus::Running, ended_ms: None, version, ..experiment });
        Ok(next)
    }

    /// Gives the arms other weights. A treatment's units stay in it if its weight does not fall.
    ///
    /// # Errors
    /// When there is no such experiment, it is over, or the weights do not fit.
    pub fn set_weights(&self, name: &str, weights: &[u32]) -> Result<Experiments, ChangeError> {
        self.change(name, |experiment| {
            fit(weights, experiment.arms.len())?;
            let fixed = 1..experiment.arms.len().saturating_sub(1);
            let is_off = weights.first() == Some(&BUCKETS);
            if !is_off && weights.get(fixed.clone()) != experiment.weights.get(fixed) {
                return Err(WeightsError::Moves.into());
            }
            experiment.weights = weights.to_vec();
            Ok(())
        })
    }

    /// What serves decides everything until it is resumed.
    ///
    /// # Errors
    /// When there is no such experiment, or it does not run.
    pub fn pause(&self, name: &str) -> Result<Experiments, ChangeError> {
        self.change(name, |experiment| turn(experiment, &ExperimentStatus::Running, ExperimentStatus::Paused))
    }

    /// It runs again.
    ///
    /// # Errors
    /// When there is no such experiment, it is not paused, or another one runs in the slot.
    pub fn resume(&self, name: &str) -> Result<Experiments, ChangeError> {
        let slot = self.get(name).map(|experiment| experiment.slot);
        if let Some(running) = slot.and_then(|slot| self.running(slot)).filter(|running| *running.name != *name) {
            return Err(ChangeError::Busy { slot: running.slot, running: running.name.clone() });
        }
        self.change(name, |experiment| turn(experiment, &ExperimentStatus::Paused, ExperimentStatus::Running))
    }

    /// A treatment becomes what serves, which is the host's to bring about; the experiment is over. `arm` names it if there are several.
    ///
    /// # Errors
    /// When there is no such experiment or arm, or it is over.
    pub fn promote(&self, name: &str, arm: Option<&str>, unix_ms: u64) -> Result<Experiments, ChangeError> {
        self.change(name, |experiment| {
            let treatments = experiment.arms.get(1..).unwrap_or_default();
            let found = match (arm, treatments) {
                (None, [only]) => Some(only),
                (None, _) => None,
                (Some(arm), treatments) => treatments.iter().find(|treatment| *treatment.name == *arm),
            };
            let names = || treatments.iter().map(|arm| &*arm.name).collect::<Vec<_>>().join(", ");
            let arm = found.ok_or_else(|| ChangeError::Arm(names()))?.name.clone();
            (experiment.status, experiment.ended_ms) = (ExperimentStatus::Promoted { arm }, Some(unix_ms));
            Ok(())
        })
    }

    /// A promotion could not be brought about: the experiment is as it was before (`was`), or paused if another one runs in its slot by
    /// now. `version` is that of the promotion.
    ///
    /// # Errors
    /// When there is no such experiment, or that is not what happened to it last.
    pub fn unpromote(&self, name: &str, version: u64, was: &ExperimentStatus) -> Result<Experiments, ChangeError> {
        let found = self.get(name).ok_or_else(|| ChangeError::Unknown(name.to_owned()))?;
        if found.version != version || !matches!(found.status, ExperimentStatus::Promoted { .. }) {
            return Err(ChangeError::Not { name: name.to_owned(), is: found.status.as_str() });
        }
        let is_free = self.running(found.slot).is_none();
        let mut next = self.next();
        for experiment in next.list.iter_mut().filter(|experiment| *experiment.name == *name) {
            experiment.status = if is_free { was.clone() } else { ExperimentStatus::Paused };
            (experiment.ended_ms, experiment.version) = (None, next.version);
        }
        Ok(next)
    }

    /// The experiment is over, and what serves goes on serving.
    ///
    /// # Errors
    /// When there is no such experiment, or it is over.
    pub fn abort(&self, name: &str, reason: &str, unix_ms: u64) -> Result<Experiments, ChangeError> {
        self.change(name, |experiment| {
            let reason = cut(reason).to_owned();
            end(experiment, ExperimentStatus::Aborted { reason, guardrail: None }, unix_ms);
            Ok(())
        })
    }

    /// A treatment crossed a guardrail: all weights of treatments are 0, the experiment is over, and says why.
    ///
    /// # Errors
    /// When there is no such experiment, or it is over.
    pub fn guardrail(
        &self,
        name: &str,
        arm: &str,
        crossed: &Crossed,
        unix_ms: u64,
    ) -> Result<Experiments, ChangeError> {
        self.change(name, |experiment| {
            let reason = cut(&format!("guardrail: {arm}: {crossed}")).to_owned();
            end(experiment, ExperimentStatus::Aborted { reason, guardrail: Some(crossed.guardrail) }, unix_ms);
            Ok(())
        })
    }

    /// Whether a value that was read from somewhere could have come about by these changes.
    ///
    /// # Errors
    /// What is wrong with the first experiment that could not.
    pub fn check(&self) -> Result<(), CreateError> {
        if self.list.len() > EXPERIMENTS_MAX {
            return Err(CreateError::TooMany);
        }
        for (index, experiment) in self.list.iter().enumerate() {
            sound(experiment)?;
            let before = self.list.iter().take(index);
            if before.clone().any(|other| other.name == experiment.name) {
                return Err(CreateError::Taken(experiment.name.clone()));
            }
            let is_running = |one: &&Experiment| one.status == ExperimentStatus::Running && one.slot == experiment.slot;
            if experiment.status == ExperimentStatus::Running
                && let Some(other) = before.clone().find(is_running)
            {
                return Err(CreateError::Busy { slot: other.slot, running: other.name.clone() });
            }
        }
        Ok(())
    }

    fn next(&self) -> Experiments {
        Experiments { version: self.version.saturating_add(1), list: self.list.clone() }
    }

    fn change(
        &self,
        name: &str,
        change: impl FnOnce(&mut Experiment) -> Result<(), ChangeError>,
    ) -> Result<Experiments, ChangeError> {
        let mut next = self.next();
        let found = next.list.iter_mut().find(|experiment| *experiment.name == *name);
        let experiment = found.ok_or_else(|| ChangeError::Unknown(name.to_owned()))?;
        if experiment.status.is_over() {
            return Err(ChangeError::Over { name: name.to_owned(), is: experiment.status.as_str() });
        }
        change(experiment)?;
        experiment.version = next.version;
        Ok(next)
    }
}

fn turn(experiment: &mut Experiment, from: &ExperimentStatus, to: ExperimentStatus) -> Result<(), ChangeError> {
    if experiment.status != *from {
        return Err(ChangeError::Not { name: experiment.name.clone(), is: experiment.status.as_str() });
    }
    experiment.status = to;
    Ok(())
}

fn end(experiment: &mut Experiment, status: ExperimentStatus, unix_ms: u64) {
    experiment.weights = vec![0; experiment.arms.len()];
    if let Some(control) = experiment.weights.first_mut() {
        *control = BUCKETS;
    }
    (experiment.status, experiment.ended_ms) = (status, Some(unix_ms));
}

fn sound(experiment: &Experiment) -> Result<(), CreateError> {
    let names = std::iter::once(&experiment.name).chain(experiment.arms.iter().map(|arm| &arm.name));
    if let Some(wrong) = names.into_iter().find(|name| !is_name(name)) {
        return Err(CreateError::Name(cut(wrong).to_owned()));
    }
    let salt = &experiment.salt;
    if salt.is_empty() || salt.len() > NAME_BYTES_MAX || salt.chars().any(char::is_control) {
        return Err(CreateError::Salt);
    }
    let arms = &experiment.arms;
    let is_twice =
        |index: usize| arms.iter().take(index).any(|arm| arms.get(index).is_some_and(|at| at.name == arm.name));
    if !(2..=ARMS_MAX).contains(&arms.len()) || (0..arms.len()).any(is_twice) {
        return Err(CreateError::Arms);
    }
    fit(&experiment.weights, arms.len())?;
    if !(HORIZON_MS_MIN..=HORIZON_MS_MAX).contains(&experiment.horizon_ms) {
        return Err(CreateError::Horizon);
    }
    if experiment.guardrails.are_sound() { Ok(()) } else { Err(CreateError::Guardrail) }
}

fn fit(weights: &[u32], arms: usize) -> Result<(), WeightsError> {
    let sum: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    if weights.len() == arms && sum == u64::from(BUCKETS) { Ok(()) } else { Err(WeightsError::Sum { arms }) }
}

fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// So much of a text as is kept.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(REASON_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
