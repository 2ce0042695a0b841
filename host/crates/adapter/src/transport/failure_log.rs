//! Logs a repeated failure once, and once when it is over.

use super::types::TransportError;

/// The failures of one kind of command.
#[derive(Debug)]
pub(crate) struct FailureLog {
    action: &'static str,
    is_failing: bool,
}

impl FailureLog {
    pub(crate) fn of(action: &'static str) -> Self {
        FailureLog { action, is_failing: false }
    }

    /// The command failed.
    pub(crate) fn note(&mut self, error: &TransportError) {
        // The transport itself logs that there is no connection.
        if matches!(error, TransportError::Disconnected(_) | TransportError::Closed) {
            return;
        }
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::warn!(what = self.action, %error, "Redis does not do what it is asked");
        }
    }

    /// The command succeeded.
    pub(crate) fn end(&mut self) {
        if std::mem::replace(&mut self.is_failing, false) {
            tracing::info!(what = self.action, "Redis does again what it is asked");
        }
    }
}
