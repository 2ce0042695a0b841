//! Says in the log once that something fails, and once that it is over, however often it failed.

use crate::transport::TransportError;

/// Something that can fail again and again.
#[derive(Debug)]
pub(crate) struct Trouble {
    what: &'static str,
    is_told: bool,
}

impl Trouble {
    pub(crate) fn with(what: &'static str) -> Self {
        Trouble { what, is_told: false }
    }

    /// It failed.
    pub(crate) fn note(&mut self, error: &TransportError) {
        // That there is no connection is said by the transport, for all that needs one.
        if matches!(error, TransportError::Disconnected(_) | TransportError::Closed) {
            return;
        }
        if !std::mem::replace(&mut self.is_told, true) {
            tracing::warn!(what = self.what, %error, "Redis does not do what it is asked");
        }
    }

    /// It worked.
    pub(crate) fn end(&mut self) {
        if std::mem::replace(&mut self.is_told, false) {
            tracing::info!(what = self.what, "Redis does again what it is asked");
        }
    }
}
