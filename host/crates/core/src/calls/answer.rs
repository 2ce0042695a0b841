//! How a call ends for its caller, why a call or a method is refused, and the words that clients are told.

use thiserror::Error;

/// What clients of the seed are told, word for word.
pub mod message {
    /// An rpc-call without a usable method.
    pub const METHOD_REQUIRED: &str = "Invalid parameters: method is required";
    /// Nobody has the method, or no candidate was good enough.
    pub const UNAVAILABLE: &str = "RPC method not available";
    /// The caller would have called itself.
    pub const SAME_SOCKET: &str = "Cannot call RPC on the same socket";
    /// The target left and the call was given up.
    pub const TARGET_DISCONNECTED: &str = "RPC target disconnected";
    /// The call's deadline passed.
    pub const TIMED_OUT: &str = "operation has timed out";
    /// Anything else.
    pub const INTERNAL: &str = "Internal error";
    /// A bound of this server on open calls is reached; not a word of the seed, which had no bounds.
    pub const TOO_MANY_CALLS: &str = "Too many calls in flight";
    /// A bound of this server on calls that wait for one method is reached; not a word of the seed.
    pub const TOO_MANY_WAITING: &str = "Too many calls waiting";
    /// A bound of this server on a socket's methods is reached; not a word of the seed.
    pub const TOO_MANY_METHODS: &str = "Too many methods";
    /// The target is on another replica, and the link to it is down; not a word of the seed.
    pub const UNREACHABLE: &str = "RPC target unreachable";
    /// An rpc-register or rpc-unregister without a usable method.
    pub const INVALID_METHOD: &str = "Invalid method name";
}

/// How a call ended for its caller. `R` is the daemon's result as the host carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<R> {
    /// The daemon answered.
    Result(R),
    /// Nobody has the method, or no candidate was good enough.
    Unavailable,
    /// The caller would have called itself.
    SameSocket,
    /// The target left and the call was given up.
    TargetDisconnected,
    /// The call's deadline passed, or the request could not be answered any more.
    TimedOut,
    /// The daemon answered what cannot be passed on.
    Unusable,
    /// Only other replicas have the method and they cannot be reached, or the answer was lost with the link to them.
    Unreachable,
}

impl<R> Answer<R> {
    /// What the caller is told when there is no result; `None` if there is one.
    pub const fn error(&self) -> Option<&'static str> {
        match self {
            Answer::Result(_) => None,
            Answer::Unavailable => Some(message::UNAVAILABLE),
            Answer::SameSocket => Some(message::SAME_SOCKET),
            Answer::TargetDisconnected => Some(message::TARGET_DISCONNECTED),
            Answer::TimedOut => Some(message::TIMED_OUT),
            Answer::Unusable => Some(message::INTERNAL),
            Answer::Unreachable => Some(message::UNREACHABLE),
        }
    }
}

/// Why a call was not taken on. There is no [`CallId`](crate::ids::CallId) and no command for it: the host answers at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CallRefused {
    /// The method is empty or longer than [`super::settings::CallSettings::method_bytes_max`].
    #[error("the method is empty or too long")]
    InvalidMethod,
    /// The caller is not connected (any more).
    #[error("the caller is not connected")]
    UnknownCaller,
    /// [`super::settings::CallSettings::calls_max`] is reached.
    #[error("too many calls are open in this shard")]
    TooManyCalls,
    /// [`super::settings::CallSettings::calls_per_user_max`] is reached.
    #[error("too many calls of this user are open")]
    TooManyCallsOfUser,
    /// Nobody has the method and [`super::settings::CallSettings::waiting_per_room_max`] is reached.
    #[error("too many calls wait for this method")]
    TooManyWaiting,
}

impl CallRefused {
    /// What the caller is told.
    pub const fn message(self) -> &'static str {
        match self {
            CallRefused::InvalidMethod => message::METHOD_REQUIRED,
            CallRefused::TooManyWaiting => message::TOO_MANY_WAITING,
            CallRefused::TooManyCalls | CallRefused::TooManyCallsOfUser => message::TOO_MANY_CALLS,
            CallRefused::UnknownCaller => message::INTERNAL,
        }
    }
}

/// Why a method was not registered or unregistered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// The method is empty or longer than [`super::settings::CallSettings::method_bytes_max`].
    #[error("the method is empty or too long")]
    InvalidMethod,
    /// [`super::settings::CallSettings::methods_per_socket_max`] or [`super::settings::CallSettings::method_bytes_per_socket_max`] is reached.
    #[error("the socket has too many methods")]
    TooManyMethods,
    /// The socket is not connected (any more).
    #[error("the socket is not connected")]
    UnknownSocket,
}

impl RegisterError {
    /// What the client is told in its `rpc-error`.
    pub const fn message(self) -> &'static str {
        match self {
            RegisterError::InvalidMethod => message::INVALID_METHOD,
            RegisterError::TooManyMethods => message::TOO_MANY_METHODS,
            RegisterError::UnknownSocket => message::INTERNAL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_speak_the_seeds_words_where_it_has_them() {
        assert_eq!(Answer::Result(1).error(), None);
        assert_eq!(Answer::<()>::Unavailable.error(), Some("RPC method not available"));
        assert_eq!(Answer::<()>::SameSocket.error(), Some("Cannot call RPC on the same socket"));
        assert_eq!(Answer::<()>::TargetDisconnected.error(), Some("RPC target disconnected"));
        assert_eq!(Answer::<()>::TimedOut.error(), Some("operation has timed out"));
        assert_eq!(Answer::<()>::Unusable.error(), Some("Internal error"));
        assert_eq!(Answer::<()>::Unreachable.error(), Some("RPC target unreachable"));
    }

    #[test]
    fn refusals_speak_the_seeds_words_where_it_has_them() {
        let told = |refused: CallRefused| refused.message();
        assert_eq!(told(CallRefused::InvalidMethod), "Invalid parameters: method is required");
        assert_eq!(told(CallRefused::TooManyWaiting), "Too many calls waiting");
        assert_eq!(told(CallRefused::UnknownCaller), "Internal error");
        assert_eq!(told(CallRefused::TooManyCalls), "Too many calls in flight");
        assert_eq!(told(CallRefused::TooManyCallsOfUser), "Too many calls in flight");
    }
}
