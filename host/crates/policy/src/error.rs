//! Why a policy was not loaded, and why a decision was not a policy's.

use serde::{Deserialize, Serialize};

/// The engine could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// wasmtime refuses the settings on this machine, or an interface could not be linked.
    #[error("the wasm engine cannot start: {0}")]
    Wasmtime(String),
    /// One of the engine's threads could not be started.
    #[error("a thread of the wasm engine cannot start: {0}")]
    Thread(#[from] std::io::Error),
}

impl From<wasmtime::Error> for EngineError {
    fn from(error: wasmtime::Error) -> Self {
        Self::Wasmtime(format!("{error:#}"))
    }
}

/// Why a policy was not loaded; what served before goes on serving.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// The file has no bytes, as one that is just being written.
    #[error("is empty")]
    Empty,
    /// Larger than a policy may be.
    #[error("has {size_bytes} bytes, more than the {limit_bytes} a policy may have")]
    TooLarge {
        /// Size of the file.
        size_bytes: usize,
        /// The bound.
        limit_bytes: usize,
    },
    /// A plain wasm module.
    #[error("is a core module, not a component: build it for wasm32-wasip2")]
    CoreModule,
    /// Not wasm, cut off, or using a feature that is switched off.
    #[error("is no valid component: {0}")]
    Malformed(String),
    /// It wants more of the host than a policy may have: the interfaces.
    #[error("imports what a policy may not: {}", .0.join(", "))]
    ForbiddenImport(Vec<String>),
    /// It exports another world than the slot asks for.
    #[error("is {found}, but {wanted} is wanted")]
    WrongWorld {
        /// What it seems to be.
        found: String,
        /// What the slot needs.
        wanted: String,
    },
    /// The names fit, the types do not.
    #[error("does not fit the contract: {0}")]
    Link(String),
    /// The policy does not accept its configuration; its own words.
    #[error("refuses its configuration: {0}")]
    ConfigureRefused(String),
    /// It trapped or ran over the deadline while being instantiated, described or configured.
    #[error("failed while it was set up: {0}")]
    ConfigureFailed(String),
    /// What it says of itself is out of the contract's bounds.
    #[error("describes itself badly: {0}")]
    BadInfo(String),
    /// The same module with the same configuration was given up before: why.
    #[error("is in quarantine until it is retried: {0}")]
    Quarantined(String),
}

impl LoadError {
    /// The stable name of the kind, for metrics and the admin API.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::Empty => "empty",
            Self::TooLarge { .. } => "too-large",
            Self::CoreModule => "core-module",
            Self::Malformed(_) => "malformed",
            Self::ForbiddenImport(_) => "forbidden-import",
            Self::WrongWorld { .. } => "wrong-world",
            Self::Link(_) => "link",
            Self::ConfigureRefused(_) => "configure-refused",
            Self::ConfigureFailed(_) => "configure-failed",
            Self::BadInfo(_) => "bad-info",
            Self::Quarantined(_) => "quarantined",
        }
    }
}

/// Why nothing was undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    /// No earlier generation is kept that never failed too often.
    #[error("no earlier good generation is kept")]
    NothingKept,
}

/// Why an arm was not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ArmError {
    /// The slot has as many as it may have.
    #[error("the slot has {limit} arms already")]
    TooMany {
        /// The bound.
        limit: usize,
    },
}

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
