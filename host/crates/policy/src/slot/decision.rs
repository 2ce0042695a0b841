//! A decision, and a shadow's.

use crate::guest::Digest;
use crate::guest::FailureKind;
use std::time::Duration;

/// A decision and who made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision<V> {
    /// What to do.
    pub verdict: V,
    /// Whose verdict it is.
    pub by: By,
    /// Grows in the process, over all slots, from 1; what a policy logs meanwhile has it as `decision`.
    pub id: u64,
    /// The generation that was asked, whether its answer was taken or not; `None` when none is loaded.
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
        /// Why it was not the policy's; `None` when none is loaded.
        reason: Option<FailureKind>,
    },
}

/// What an arm would have decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Shadow<V> {
    /// Its verdict, or why there is none.
    pub verdict: Result<V, FailureKind>,
    /// Of the same sequence as decisions'.
    pub id: u64,
    /// The arm's generation.
    pub digest: Digest,
    /// As in [`Decision`].
    pub cost: Duration,
}
