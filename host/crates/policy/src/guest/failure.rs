//! Why a decision was not a policy's.

use serde::{Deserialize, Serialize};

/// Why a decision was answered by the native rule although a policy was loaded.
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
    /// It answered what the contract does not allow, or more than the host reads.
    OutOfBounds,
    /// It returned a `policy-error`.
    PolicyError,
    /// No instance was at hand and none could be made.
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
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// Bounded; names the guest's functions and carries what it said on stderr.
    pub(crate) message: String,
    /// After a trap wasmtime refuses the whole store.
    pub(crate) instance_lost: bool,
    /// It is no fault of the policy, and the breaker does not count it.
    pub(crate) is_borne: bool,
}
