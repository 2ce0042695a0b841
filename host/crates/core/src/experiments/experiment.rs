//! One experiment of a slot: its arms, its status, and which arm decides for a unit.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::bucket::bucket;
use super::guardrail::{Guardrail, Guardrails};
use super::trial::{Exposure, Trial};

/// Arms of one experiment at most.
pub const ARMS_MAX: usize = 8;
/// The longest name of an experiment or arm, and the longest salt, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// The longest horizon, in milliseconds: a week.
pub const HORIZON_MS_MAX: u32 = 7 * 24 * 3_600 * 1_000;
/// The shortest horizon, in milliseconds.
pub const HORIZON_MS_MIN: u32 = 1_000;
/// The horizon unless it is set otherwise, in milliseconds.
pub const HORIZON_MS: u32 = 600_000;

/// A decision that a policy can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Slot {
    /// Which daemon gets a call.
    Target,
    /// How long a call waits for a daemon.
    Grace,
    /// Whether a call in flight is given up.
    Presence,
    /// Which of two sockets holds a device's session.
    Settle,
}

impl Slot {
    /// All of them.
    pub const ALL: [Slot; 4] = [Slot::Target, Slot::Grace, Slot::Presence, Slot::Settle];

    /// As it is written everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Slot::Target => "target",
            Slot::Grace => "grace",
            Slot::Presence => "presence",
            Slot::Settle => "settle",
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What decides in an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ArmModule {
    /// `current`: what serves the slot.
    Current,
    /// `native`: the native rule, whatever serves.
    Native,
    /// The module with this digest: SHA-256 in lower-case hexadecimal.
    Digest(Box<str>),
}

/// A text that names no module.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is neither `current` nor `native` nor a digest (64 hexadecimal digits)")]
pub struct NoModule(String);

impl TryFrom<String> for ArmModule {
    type Error = NoModule;

    fn try_from(text: String) -> Result<ArmModule, NoModule> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.as_str() {
            "current" => Ok(ArmModule::Current),
            "native" => Ok(ArmModule::Native),
            digest if digest.len() == 64 && digest.bytes().all(is_digit) => Ok(ArmModule::Digest(text.into())),
            _ => Err(NoModule(text)),
        }
    }
}

impl From<ArmModule> for String {
    fn from(module: ArmModule) -> String {
        match module {
            ArmModule::Current => "current".to_owned(),
            ArmModule::Native => "native".to_owned(),
            ArmModule::Digest(digest) => digest.into(),
        }
    }
}

/// One of the rules that are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// Its name: `[a-z0-9-]`, at most [`NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// What decides in it.
    pub module: ArmModule,
}

/// How an experiment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "is")]
pub enum ExperimentStatus {
    /// Decisions go to the arms, and units are exposed.
    Running,
    /// What serves decides everything; nobody is exposed.
    Paused,
    /// An arm became what serves. It is over.
    Promoted {
        /// The arm.
        arm: String,
    },
    /// It was ended. It is over.
    Aborted {
        /// Why, in words.
        reason: String,
        /// The guardrail that ended it, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guardrail: Option<Guardrail>,
    },
}

impl ExperimentStatus {
    /// Whether it can never run again.
    pub const fn is_over(&self) -> bool {
        matches!(self, ExperimentStatus::Promoted { .. } | ExperimentStatus::Aborted { .. })
    }

    /// As it is written in lists.
    pub const fn as_str(&self) -> &'static str {
        match self {
            ExperimentStatus::Running => "running",
            ExperimentStatus::Paused => "paused",
            ExperimentStatus::Promoted { .. } => "promoted",
            ExperimentStatus::Aborted { .. } => "aborted",
        }
    }
}

/// An experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Its name: `[a-z0-9-]`, at most [`NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// The slot.
    pub slot: Slot,
    /// Goes into each unit's bucket, so that experiments do not all have the same units. At most [`NAME_BYTES_MAX`] bytes,
    /// without control characters.
    pub salt: String,
    /// The control, then the treatments.
    pub arms: Vec<Arm>,
    /// Of each arm, in their order: so many of [`BUCKETS`](super::BUCKETS), which is their sum.
    pub weights: Vec<u32>,
    /// How it is.
    pub status: ExperimentStatus,
    /// What serves decides, the treatments are only asked too.
    #[serde(default)]
    pub shadow_only: bool,
    /// How long after its exposure what becomes of a unit is counted, in milliseconds.
    pub horizon_ms: u32,
    /// The operator's settle window: how long a holder is to be kept to be a stable one, in milliseconds.
    pub window_ms: u32,
    /// The engine's ping interval, in milliseconds: a holder of which nothing was heard for longer is taken for half-open.
    pub silence_ms: u32,
    /// The limits at which it ends by itself.
    #[serde(default)]
    pub guardrails: Guardrails,
    /// When it was created, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// When it was promoted or aborted, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// The version of [`Experiments`](super::Experiments) that changed it last.
    pub version: u64,
}

impl Experiment {
    /// What its trials are known by: another experiment that has its name has another salt.
    pub fn id(&self) -> String {
        format!("{}:{}", self.name, self.salt)
    }

    /// Whether its arms decide.
    pub fn decides(&self) -> bool {
        self.status == ExperimentStatus::Running && !self.shadow_only
    }

    /// The index of the arm that has this name.
    pub fn arm(&self, name: &str) -> Option<usize> {
        self.arms.iter().position(|arm| *arm.name == *name)
    }

    /// The arm that was promoted, if one was.
    pub fn promoted_arm(&self) -> Option<&Arm> {
        let ExperimentStatus::Promoted { arm } = &self.status else { return None };
        self.arms.get(self.arm(arm)?)
    }

    /// The arm that a unit is in: its index. The treatments' ranges of buckets are laid end to end from 0 on; the rest is the
    /// control's.
    pub fn arm_of(&self, unit: &str) -> usize {
        let bucket = bucket(&self.salt, unit);
        let mut end = 0;
        let ranges = self.weights.iter().enumerate().skip(1);
        let mut below = ranges.map(|(arm, weight)| {
            end += weight;
            (arm, end)
        });
        below.find(|(_, end)| bucket < *end).map_or(0, |(arm, _)| arm)
    }

    /// The arm that is to decide for a device, if an arm is: its index.
    ///
    /// `pinned` is the arm of the same settle asked before; `trial` is what the device's record holds. Both keep the device in
    /// its arm while the trial's horizon lasts, whatever became of the weights, unless that arm's is 0. While the horizon of another
    /// experiment's trial lasts no arm decides: an exposure would end it before its time.
    pub fn arm_for(&self, unit: &str, trial: Option<&Trial>, pinned: Option<&Exposure>, unix_ms: u64) -> Option<usize> {
        if !self.decides() {
            return None;
        }
        let id = self.id();
        if trial.is_some_and(|trial| *trial.experiment != *id && trial.is_open(unix_ms)) {
            return None;
        }
        let pinned = pinned.filter(|exposure| exposure.experiment == id).map(|exposure| &*exposure.arm);
        let exposed = trial.filter(|trial| trial.is_open(unix_ms)).map(|trial| &*trial.arm);
        let kept = pinned.or(exposed).and_then(|name| self.arm(name));
        let kept = kept.filter(|arm| self.weights.get(*arm).is_some_and(|weight| *weight > 0));
        Some(kept.unwrap_or_else(|| self.arm_of(unit)))
    }

    /// What a decision in an arm adds to a device's record. `is_failed`: it fell back to the native rule.
    pub fn exposure(&self, arm: usize, is_failed: bool) -> Option<Exposure> {
        Some(Exposure {
            experiment: self.id(),
            arm: self.arms.get(arm)?.name.clone(),
            is_control: arm == 0,
            weights: self.weights.clone(),
            horizon_ms: self.horizon_ms,
            window_ms: self.window_ms,
            silence_ms: self.silence_ms,
            is_failed,
        })
    }
}
