//! The reports on slots for the admin API.

use super::history::Quarantined;
use crate::contract::{Info, SlotName};
use crate::guest::{Digest, FailureKind, LoadError};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The report on one slot, as in `GET /v1/policies`.
#[derive(Debug, Clone, Serialize)]
pub struct SlotStatus {
    /// The slot.
    pub slot: SlotName,
    /// Who answers: `wasm` or `native`.
    pub source: &'static str,
    /// The policy's description of itself; absent when the native rule answers.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub info: Option<Info>,
    /// Digest of the serving generation.
    pub digest: Option<Digest>,
    /// Grows with each change of what serves the slot; 0 = never changed.
    pub generation: u64,
    /// When it began to serve, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// Decisions since the start.
    pub calls: u64,
    /// Decisions by the native rule, for whatever reason.
    pub native: u64,
    /// Failed decisions by kind; kinds that never occurred are left out.
    pub failures: BTreeMap<&'static str, u64>,
    /// Why the last load failed; absent if it went well.
    pub last_load_error: Option<LoadFailure>,
    /// The last failed decision.
    pub last_failure: Option<DecisionFailure>,
    /// Generations in use: the serving one, arms, and those with decisions under way.
    pub live_generations: usize,
    /// Whether an operator went back to what serves.
    pub undone: bool,
    /// Whether what serves is the last good generation, because what was loaded after it is bad.
    pub last_good: bool,
    /// How often a serving generation was given up for its failures.
    pub trips: u64,
    /// Generations that served before, newest first.
    pub kept: Vec<KeptStatus>,
    /// Digests that cannot be loaded until they are retried, oldest first.
    pub quarantined: Vec<Quarantined>,
    /// The arms, which answer beside what serves.
    pub arms: Vec<ArmStatus>,
}

/// A generation that served before and can serve again.
#[derive(Debug, Clone, Serialize)]
pub struct KeptStatus {
    /// Its number when it served.
    pub generation: u64,
    /// Its digest.
    pub digest: Digest,
    /// The policy's description of itself.
    #[serde(flatten)]
    pub info: Info,
    /// When it began to serve, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// Whether it was given up for its failures; then neither a trip nor an undo goes back to it.
    pub tripped: bool,
}

/// The report on one arm.
#[derive(Debug, Clone, Serialize)]
pub struct ArmStatus {
    /// Its name.
    pub arm: String,
    /// Its generation.
    pub digest: Digest,
    /// The policy's description of itself.
    #[serde(flatten)]
    pub info: Info,
    /// Questions since it was set, including those as a shadow.
    pub calls: u64,
    /// Questions that it did not answer, by kind.
    pub failures: BTreeMap<&'static str, u64>,
    /// The last failure.
    pub last_failure: Option<DecisionFailure>,
    /// Whether it failed too often and is asked no more; then the native rule answers for it.
    pub tripped: bool,
}

/// A load that failed.
#[derive(Debug, Clone, Serialize)]
pub struct LoadFailure {
    /// See [`LoadError::kind`].
    pub kind: &'static str,
    /// For the operator.
    pub message: String,
    /// Digest of what was to be loaded; absent when it could not be read.
    pub digest: Option<Digest>,
    /// Milliseconds since the Unix epoch.
    pub at: u64,
}

/// A decision that failed.
#[derive(Debug, Clone, Serialize)]
pub struct DecisionFailure {
    /// The kind.
    pub kind: FailureKind,
    /// For the policy's author: the trap, what it printed to stderr, the functions it was in.
    pub message: String,
    /// The decision's moment, in milliseconds since the Unix epoch.
    pub at: u64,
    /// The generation that failed; another one may serve by now.
    pub generation: u64,
}

impl LoadFailure {
    pub(super) fn new(error: &LoadError, digest: Option<Digest>) -> Self {
        Self { kind: error.kind(), message: error.to_string(), digest, at: unix_ms() }
    }
}

/// Milliseconds since the Unix epoch.
pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
