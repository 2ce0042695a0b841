//! The ways in which a call can end.

use crate::telemetry::label_values::label_values;

label_values! {
    /// How a call ended. The labels are those of existing deployments where they have one.
    pub(crate) enum CallOutcome {
        Success = "success",
        NotAvailable = "not_available",
        SameSocket = "same_socket",
        TargetDisconnected = "target_disconnected",
        Timeout = "timeout",
        Unusable = "unusable",
        Unreachable = "unreachable",
        /// It was refused before it began.
        Refused = "refused",
        /// Its caller disconnected.
        Forgotten = "forgotten",
    }
}
