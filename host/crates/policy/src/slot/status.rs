//! What is known of a slot: counters, the last errors, and the report for the admin API.

use crate::contract::Info;
use crate::contract::slot_name::SlotName;
use crate::guest::Digest;
use crate::guest::{Failure, FailureKind, LoadError};
use crate::slot::history::Quarantined;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The report on one slot, as in `GET /v1/policies`.
#[derive(Debug, Clone, Serialize)]
pub struct SlotStatus {
    /// The slot.
    pub slot: SlotName,
    /// What answers: `wasm` or `native`.
    pub source: &'static str,
    /// What the policy says of itself; absent when the native rule answers.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub info: Option<Info>,
    /// Digest of the serving generation.
    pub digest: Option<Digest>,
    /// Grows with each change of what serves the slot; 0 = never changed.
    pub generation: u64,
    /// Since when it serves, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// Decisions asked for since the start.
    pub calls: u64,
    /// Those answered by the native rule, for whatever reason.
    pub native: u64,
    /// Failed decisions by kind; kinds that never occurred are left out.
    pub failures: BTreeMap<&'static str, u64>,
    /// Why the last load failed; absent once a load went well.
    pub last_load_error: Option<LoadFailure>,
    /// The last failed decision.
    pub last_failure: Option<DecisionFailure>,
    /// Generations in use: what serves, arms, and those in which calls are still under way.
    pub live_generations: usize,
    /// An operator went back to what serves.
    pub undone: bool,
    /// What serves is the last good generation: what was loaded after it is bad.
    pub last_good: bool,
    /// How often what served was given up for its failures.
    pub trips: u64,
    /// Generations that served before, newest first.
    pub kept: Vec<KeptStatus>,
    /// What no load takes until it is retried, oldest first.
    pub quarantined: Vec<Quarantined>,
    /// What answers beside it.
    pub arms: Vec<ArmStatus>,
}

/// A generation that served before and can serve again.
#[derive(Debug, Clone, Serialize)]
pub struct KeptStatus {
    /// Its number when it served.
    pub generation: u64,
    /// Its digest.
    pub digest: Digest,
    /// What the policy says of itself.
    #[serde(flatten)]
    pub info: Info,
    /// When it began to serve, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// It was given up for its failures: no way back leads to it.
    pub tripped: bool,
}

/// An arm in the slot's report.
#[derive(Debug, Clone, Serialize)]
pub struct ArmStatus {
    /// Its name.
    pub arm: String,
    /// Its generation.
    pub digest: Digest,
    /// What the policy says of itself.
    #[serde(flatten)]
    pub info: Info,
    /// Questions it was asked, as a shadow too, since it was set.
    pub calls: u64,
    /// Those that it did not answer, by kind.
    pub failures: BTreeMap<&'static str, u64>,
    /// The last failure.
    pub last_failure: Option<DecisionFailure>,
    /// It failed too often and is asked no more: the native rule answers for it.
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
    /// For the policy's author: the trap, what it said on stderr, the functions it was in.
    pub message: String,
    /// The decision's moment, in milliseconds since the Unix epoch.
    pub at: u64,
    /// The generation that failed; another one may serve by now.
    pub generation: u64,
}

impl LoadFailure {
    pub(crate) fn new(error: &LoadError, digest: Option<Digest>) -> Self {
        Self { kind: error.kind(), message: error.to_string(), digest, at: unix_ms() }
    }
}

impl DecisionFailure {
    pub(crate) fn new(failure: Failure, at: u64, generation: u64) -> Self {
        Self { kind: failure.kind, message: failure.message, at, generation }
    }
}

pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
