//! The state of a call while it is open, and the stage that it has reached.

use std::time::Duration;

use crate::decisions::{Call as PolicyCall, Departure};
use crate::ids::{AskId, SocketId};
use crate::room::RpcRoom;
use crate::time::{Time, span_ms};

/// What is kept of a call that is not answered yet.
#[derive(Debug)]
pub(crate) struct OpenCall {
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
    pub(crate) stage: CallStage,
}

impl OpenCall {
    /// Its view for a policy that was asked `attempt` times before.
    pub(crate) fn view(&self, attempt: u32, now: Time) -> PolicyCall {
        PolicyCall {
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
pub(crate) enum CallStage {
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
    Doubtful(TargetDoubt),
}

/// A target that left while a call was in flight to it.
#[derive(Debug)]
pub(crate) struct TargetDoubt {
    pub(crate) cause: Departure,
    pub(crate) since: Time,
    /// How often `presence` was asked about it.
    pub(crate) asks: u32,
    /// The question that is open, if it is asked rather than held.
    pub(crate) ask: Option<AskId>,
}
