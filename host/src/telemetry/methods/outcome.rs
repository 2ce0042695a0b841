//! The ways in which a call can end, as its metric names them.

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    Success,
    NotAvailable,
    SameSocket,
    TargetDisconnected,
    Timeout,
    Unusable,
    Unreachable,
    /// It was refused before it began.
    Refused,
    /// Its caller disconnected.
    Forgotten,
}

impl CallOutcome {
    pub(super) const ALL: [Self; 9] = [
        Self::Success,
        Self::NotAvailable,
        Self::SameSocket,
        Self::TargetDisconnected,
        Self::Timeout,
        Self::Unusable,
        Self::Unreachable,
        Self::Refused,
        Self::Forgotten,
    ];

    /// The label, where possible that of existing deployments.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::NotAvailable => "not_available",
            Self::SameSocket => "same_socket",
            Self::TargetDisconnected => "target_disconnected",
            Self::Timeout => "timeout",
            Self::Unusable => "unusable",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::Forgotten => "forgotten",
        }
    }
}
