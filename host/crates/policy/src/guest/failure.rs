//! The ways in which a guest fails to answer.

use serde::{Deserialize, Serialize};

/// Why the native rule answered a decision although a policy was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// It ran over the slot's deadline.
    Deadline,
    /// It trapped: a panic, an out-of-bounds access, a call of exit.
    Trap,
    /// It recursed too deep.
    Stack,
    /// It trapped after it was denied memory.
    Memory,
    /// Its answer was not what the contract allows, or more than the host reads.
    OutOfBounds,
    /// It returned a `policy-error`.
    PolicyError,
    /// No instance was idle and none could be made.
    Instantiate,
    /// An arm that failed too often was not asked.
    Tripped,
}

impl FailureKind {
    /// All kinds, in the order of their counters.
    pub const ALL: [Self; 8] = [
        Self::Deadline,
        Self::Trap,
        Self::Stack,
        Self::Memory,
        Self::OutOfBounds,
        Self::PolicyError,
        Self::Instantiate,
        Self::Tripped,
    ];

    /// The stable name of the kind, for metrics and the admin API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Trap => "trap",
            Self::Stack => "stack",
            Self::Memory => "memory",
            Self::OutOfBounds => "out-of-bounds",
            Self::PolicyError => "policy-error",
            Self::Instantiate => "instantiate",
            Self::Tripped => "tripped",
        }
    }
}

/// One failed call of a guest.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", .kind.as_str())]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// Bounded; names the guest's functions and carries what it printed to stderr.
    pub(crate) message: String,
    /// After a trap wasmtime refuses the whole store.
    pub(super) instance_lost: bool,
    /// Whether the breaker counts it: false if the policy is not at fault.
    pub(crate) is_counted: bool,
}
