//! Defines the outcomes of calls: how each ended, and how long it took.

use std::time::Duration;

use pointwork_core::CallId;
use pointwork_core::calls::message;

use crate::calls::events::{Connection, Process};
use crate::calls::rooms::Room;
use crate::time::WorldTime;

/// The ways in which a call may end without a result, as outcomes name them.
pub const ERRORS: [&str; 8] =
    ["unavailable", "disconnected", "unreachable", "timed-out", "internal", "same-socket", "refused", "unheard"];

/// What a world was like for its callers. Shares are of its calls, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RpcOutcomes {
    /// How many calls came to a replica.
    pub calls: u64,
    /// Calls whose caller was told a result.
    pub answered: f64,
    /// Calls that the policies gave up although, before the deadline, the daemon's result came in after all, or a
    /// daemon had the method.
    pub aborted_wrongly: f64,
    /// How long a call waited for a daemon, from its arrival until it was sent or ended, in milliseconds; the mean.
    pub waited_ms: f64,
    /// From a call to its result, at the caller, in milliseconds; the mean over those that have one, if there are any.
    pub latency_ms: Option<f64>,
    /// The latency that nine in ten of them do not exceed.
    pub latency_p90_ms: Option<f64>,
    /// How calls ended without a result, by [`ERRORS`]. The last one means that the caller got no answer: it had left,
    /// or its replica had.
    pub errors: [f64; ERRORS.len()],
}

/// A call that a client made.
#[derive(Default)]
pub(crate) struct MeasuredCall {
    pub(crate) caller: Connection,
    /// The process that took it on, and its number there.
    pub(crate) taken_on: Option<(Process, CallId)>,
    /// It is open, and was not sent to a daemon that may not hand in results.
    pub(crate) may_be_handed_in: bool,
    pub(crate) room: Room,
    pub(crate) timeout: Duration,
    pub(crate) made: WorldTime,
    pub(crate) arrived: Option<WorldTime>,
    pub(crate) sent: Option<WorldTime>,
    /// When it ended at its replica, and with which error if it has no result.
    pub(crate) ended: Option<(WorldTime, Option<&'static str>)>,
    /// When its caller got the answer.
    pub(crate) answered: Option<WorldTime>,
    pub(crate) is_aborted_wrongly: bool,
}

impl MeasuredCall {
    pub(crate) fn new(caller: Connection, room: Room, timeout_ms: u64, now: WorldTime) -> MeasuredCall {
        MeasuredCall {
            caller,
            may_be_handed_in: true,
            room,
            timeout: Duration::from_millis(timeout_ms),
            made: now,
            ..MeasuredCall::default()
        }
    }

    /// The timeout begins with its arrival, and again when it is sent.
    pub(crate) fn deadline(&self) -> WorldTime {
        self.sent.or(self.arrived).unwrap_or(self.made) + self.timeout
    }
}

/// The index of an error in [`ERRORS`].
pub(crate) fn error_index(error: &str) -> usize {
    match error {
        message::UNAVAILABLE => 0,
        message::TARGET_DISCONNECTED => 1,
        message::UNREACHABLE => 2,
        message::TIMED_OUT => 3,
        message::SAME_SOCKET => 5,
        "refused" => 6,
        _ => 4,
    }
}
