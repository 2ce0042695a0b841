//! One rpc-call: how it is named, how it can end, and what is kept of it while it is open.

use std::time::Duration;

use thiserror::Error;

use crate::decision::Departure;
use crate::directory::RpcRoom;
use crate::time::{Time, span_ms};

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

/// A Socket.IO socket: the 16 bytes of its Engine.IO session id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u128);

/// A call: its number in its switchboard, growing from 1 and never used twice there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A question to a policy: its number within its call. An answer that names an older one is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u32);

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

/// Why a call was not taken on. There is no [`CallId`] and no command for it: the host answers at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CallRefused {
    /// The method is empty or longer than [`crate::Settings::method_bytes_max`].
    #[error("the method is empty or too long")]
    InvalidMethod,
    /// The caller is not connected (any more).
    #[error("the caller is not connected")]
    UnknownCaller,
    /// [`crate::Settings::calls_max`] is reached.
    #[error("too many calls are open in this shard")]
    TooManyCalls,
    /// [`crate::Settings::calls_per_user_max`] is reached.
    #[error("too many calls of this user are open")]
    TooManyCallsOfUser,
    /// Nobody has the method and [`crate::Settings::waiting_per_room_max`] is reached.
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

/// What is kept of a call that is not answered yet.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) caller: SocketId,
    pub(crate) room: RpcRoom,
    pub(crate) params_bytes: u32,
    pub(crate) arrived: Time,
    /// How long nobody may have the method, and then how long the daemon may take.
    pub(crate) timeout: Duration,
    /// `timeout` after it arrived; once it is sent, `timeout` after that.
    pub(crate) deadline: Time,
    /// When it is looked at again: its one entry among the timers, never after its deadline.
    pub(crate) wake: Time,
    /// The last question's number.
    pub(crate) asked: AskId,
    /// How often `target` was asked about it.
    pub(crate) target_asks: u32,
    /// How often `target` was asked since candidates were found; each but the last picked one that had left.
    pub(crate) target_asks_in_a_row: u32,
    /// How often `grace` was asked about it.
    pub(crate) grace_asks: u32,
    /// Since when it has been without its daemon, if its caller was told that it is held.
    pub(crate) held_since: Option<Time>,
    pub(crate) stage: Stage,
}

impl Call {
    /// Its view for a policy that was asked `attempt` times before.
    pub(crate) fn view(&self, attempt: u32, now: Time) -> crate::decision::Call {
        crate::decision::Call {
            method: self.room.method.clone(),
            params_bytes: self.params_bytes,
            waited_ms: span_ms(now.saturating_since(self.arrived)),
            left_ms: span_ms(self.left(now)),
            attempt,
        }
    }

    /// Until its deadline.
    pub(crate) fn left(&self, now: Time) -> Duration {
        self.deadline.saturating_since(now)
    }

    /// The number of a new question; answers to older ones are stale from here on.
    pub(crate) fn next_ask(&mut self) -> AskId {
        self.asked.0 += 1;
        self.asked
    }
}

/// Where a call is on its way.
#[derive(Debug)]
pub(crate) enum Stage {
    /// `target` is asked; these were offered, in this order.
    Choosing { ask: AskId, offered: Vec<SocketId> },
    /// Nobody has the method and `grace` is asked.
    AskingGrace { ask: AskId },
    /// Nobody has the method; held until then.
    Waiting,
    /// The request was sent.
    InFlight(Flight),
}

/// A request on its way to a daemon and back.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) target: SocketId,
    pub(crate) sent: Time,
    /// The daemon may hand in its result after a reconnect.
    pub(crate) resumable: bool,
    /// The connection that brought the request is given up by the daemon itself, which has the request and will hand the result
    /// in: what becomes of that connection is no news.
    pub(crate) is_resumed: bool,
    /// The last registration that was there when it was sent: any later one may be the daemon's return, which often is known
    /// before the end of its old connection.
    pub(crate) registrations: u64,
    pub(crate) state: FlightState,
}

#[derive(Debug)]
pub(crate) enum FlightState {
    /// Nothing is known against an answer.
    Confident,
    /// The host says that no answer can come although the target is still there.
    Unanswerable,
    /// The target left, or its replica is not heard from.
    Doubtful(Doubt),
}

/// A target that left while a call was in flight to it.
#[derive(Debug)]
pub(crate) struct Doubt {
    pub(crate) cause: Departure,
    pub(crate) since: Time,
    /// How often `presence` was asked about it.
    pub(crate) asks: u32,
    /// The question that is open, if it is asked rather than held.
    pub(crate) ask: Option<AskId>,
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
