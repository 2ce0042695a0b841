//! Why a handshake is refused, in the words that clients know.

use crate::edge::auth::AuthError;

/// Why a connection is refused. Its text is the error that the client receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeRefusal {
    /// No token, or an empty one.
    #[error("Missing authentication token")]
    MissingToken,
    /// A session-scoped client without a usable session id.
    #[error("Session ID required for session-scoped clients")]
    MissingSession,
    /// A machine-scoped client without a usable machine id.
    #[error("Machine ID required for machine-scoped clients")]
    MissingMachine,
    /// An invalid token. The source says why, for the log and not for the client.
    #[error("Invalid authentication token")]
    InvalidToken(#[source] AuthError),
    /// The user has reached `listen.connections_per_user_max`.
    #[error("Too many connections")]
    LimitReached,
}

impl HandshakeRefusal {
    /// A short name, for a metric's label.
    pub fn label(&self) -> &'static str {
        match self {
            Self::MissingToken => "missing_token",
            Self::MissingSession => "missing_session",
            Self::MissingMachine => "missing_machine",
            Self::InvalidToken(_) => "invalid_token",
            Self::LimitReached => "too_many",
        }
    }
}
