//! A decision of a slot, and of a shadow.

use crate::guest::{Digest, FailureKind};
use std::time::Duration;

/// A decision and who made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision<V> {
    /// What to do.
    pub verdict: V,
    /// Who decided.
    pub by: By,
    /// Grows in the process, over all slots, from 1. Log lines of the policy carry it as `decision`.
    pub id: u64,
    /// The generation that was asked, whether its answer was used or not; `None` when none is loaded.
    pub digest: Option<Digest>,
    /// How long the guest took: its call alone. Zero when no guest was called.
    pub cost: Duration,
}

/// Who made a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The policy.
    Wasm {
        /// Number of the generation that served the slot; 0 for an arm.
        generation: u64,
    },
    /// The native rule.
    Native {
        /// Why the policy did not decide; `None` when none is loaded.
        reason: Option<FailureKind>,
    },
}

/// What an arm would have decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Shadow<V> {
    /// Its verdict, or why there is none.
    pub verdict: Result<V, FailureKind>,
    /// An id of the same sequence as that of decisions.
    pub id: u64,
    /// The arm's generation.
    pub digest: Digest,
    /// As in [`Decision`].
    pub cost: Duration,
}
