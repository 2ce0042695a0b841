//! What a replica sees when it decides its next step: the document, the live replicas, and their reports.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Digest, Document, Uid};

/// What a replica says of itself in one slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplicaReport {
    /// What serves; `None`: the native rule.
    pub serving: Option<Digest>,
    /// Number of the generation there.
    pub generation: u64,
    /// The push that `prepared` and `error` are about ([`PendingPush::pushed_ms`](super::PendingPush::pushed_ms)).
    pub push: Option<u64>,
    /// What is prepared for the push.
    pub prepared: Option<Digest>,
    /// Why what was pushed, or what is to serve, could not be prepared.
    pub error: Option<ReportError>,
}

/// Why a replica could not prepare a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportError {
    /// Which.
    pub digest: Digest,
    /// The kind of the load error.
    pub kind: String,
    /// For the operator.
    pub message: String,
}

/// One look at the shared state.
#[derive(Debug, Clone, Default)]
pub struct RolloutView {
    /// The store's clock, in milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// The document; the default one if there is none.
    pub document: Document,
    /// What each replica reported last.
    pub reports: BTreeMap<Uid, ReplicaReport>,
    /// The replicas that are heard from; this one counts in any case.
    pub live: BTreeSet<Uid>,
    /// Whether the store has the module of what the document names.
    pub is_current_stored: bool,
    /// Whether every replica was heard from: before, nothing is decided that concerns all.
    pub is_complete: bool,
}
