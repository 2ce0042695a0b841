//! The reasons for which a policy is not loaded.

/// Why a policy was not loaded. What served before goes on serving.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// The file has no bytes, like one that is just being written.
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
    /// It imports these interfaces, which a policy may not.
    #[error("imports what a policy may not: {}", .0.join(", "))]
    ForbiddenImport(Vec<String>),
    /// It exports another world than the slot needs.
    #[error("is {found}, but {wanted} is wanted")]
    WrongWorld {
        /// What it seems to be.
        found: String,
        /// What the slot needs.
        wanted: String,
    },
    /// The names of its imports or exports fit, but the types do not.
    #[error("does not fit the contract: {0}")]
    Link(String),
    /// The policy refused its configuration, with this reason.
    #[error("refuses its configuration: {0}")]
    ConfigureRefused(String),
    /// It trapped or ran over the deadline while being instantiated, described or configured.
    #[error("failed while it was set up: {0}")]
    ConfigureFailed(String),
    /// Its description is out of the contract's bounds.
    #[error("describes itself badly: {0}")]
    BadInfo(String),
    /// The same module with the same configuration was quarantined, for this reason.
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
