//! Describes the units of an experiment as they are stored.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The most units of one experiment.
pub(crate) const UNITS_MAX: usize = 100_000;
/// The most matrix cells of one experiment.
pub(super) const CELLS_MAX: usize = 4_096;

/// The results of one unit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct UnitRow {
    pub(crate) arm: usize,
    pub(crate) weights: Vec<u32>,
    pub(crate) exposed_ms: u64,
    /// In the order of the slot's outcomes.
    pub(crate) values: Vec<Option<f64>>,
    pub(crate) decisions: u64,
    pub(crate) failures: u64,
    pub(crate) stranded_ms: u64,
    pub(crate) offline_ms: u64,
}

/// What was counted for a user so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UserSums {
    pub(crate) arm: usize,
    pub(crate) weights: Vec<u32>,
    pub(crate) exposed_ms: u64,
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) guard: Option<UserGuard>,
}

/// What a treatment decided for a user outside the observation: after the horizon, or in another arm. Used by guardrails only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UserGuard {
    pub(crate) arm: usize,
    /// When the first decision was, in milliseconds since the Unix epoch.
    pub(crate) since_ms: u64,
    pub(crate) decisions: u64,
    pub(crate) failures: u64,
}

/// Units that were exposed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExposedUnits {
    /// The time by the clock of the store, in milliseconds since the Unix epoch.
    pub(crate) now_ms: u64,
    pub(crate) units: BTreeSet<String>,
}
