//! Records what the auditor knows of one call.

use std::time::Duration;

use pointwork_core::calls::TARGET_ASKS_MAX;
use pointwork_core::decisions::Departure;
use pointwork_core::{AskId, SocketId, Time};

use crate::calls::events::CallToken;
use crate::calls::rooms::Room;
use crate::time::WorldTime;

/// A call at its process.
#[derive(Debug, Clone)]
pub(crate) struct CallRecord {
    pub(super) token: CallToken,
    pub(super) caller: SocketId,
    pub(super) room: Room,
    pub(super) timeout: Duration,
    pub(super) arrived: Time,
    pub(super) deadline: Time,
    pub(super) is_open: bool,
    pub(super) has_caller_left: bool,
    /// The last question about it.
    pub(super) ask: AskId,
    pub(super) wait: GraceState,
    /// The last question to `target` was answered.
    pub(super) is_chosen: bool,
    /// `target` rejected all candidates.
    pub(super) is_rejected: bool,
    /// How often `target` was asked in a row.
    pub(super) asked_in_a_row: u32,
    /// Nobody was known to have the method at some moment since it arrived.
    pub(super) was_unserved: bool,
    pub(super) sent: Option<SentRequest>,
    pub(super) doubt: Option<TargetLoss>,
    /// The last question about its target was answered by giving it up.
    pub(super) is_given_up: bool,
    pub(super) unanswerable: Option<Time>,
    pub(super) is_said_lost: bool,
    /// `presence` has said that it goes on waiting.
    pub(super) is_to_be_held: bool,
    /// Its caller was told that it is held.
    pub(super) is_held: bool,
}

/// The state of the question to `grace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GraceState {
    /// Not asked, or `target` was since.
    None,
    Asked,
    Until(Time),
}

/// The request of a call that was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentRequest {
    pub(super) target: SocketId,
    pub(super) at: Time,
    pub(super) moment: WorldTime,
    pub(super) is_resumable: bool,
    /// Its daemon is on another socket now, and has the request.
    pub(super) is_resumed: bool,
    /// How many registrations the process knew then. A later registration is a return.
    pub(super) registrations: u64,
}

/// The loss of the target that the process was told of.
#[derive(Debug, Clone, Copy)]
pub(super) struct TargetLoss {
    pub(super) cause: Departure,
    /// The cause that it was told before in the same step, and may have asked about.
    pub(super) before: Option<Departure>,
    pub(super) since: Time,
    /// Whether a daemon was back when `presence` was asked last.
    pub(super) is_back: bool,
    /// When that was, if it was asked since more became known.
    pub(super) asked: Option<Time>,
}

impl CallRecord {
    /// A call that was just taken on.
    pub(crate) fn new(token: CallToken, caller: SocketId, room: Room, timeout: Duration, now: Time) -> CallRecord {
        CallRecord {
            token,
            caller,
            room,
            timeout,
            arrived: now,
            deadline: now + timeout,
            is_open: true,
            has_caller_left: false,
            ask: AskId(0),
            wait: GraceState::None,
            is_chosen: false,
            is_rejected: false,
            asked_in_a_row: 0,
            was_unserved: false,
            sent: None,
            doubt: None,
            is_given_up: false,
            unanswerable: None,
            is_said_lost: false,
            is_to_be_held: false,
            is_held: false,
        }
    }

    /// The process is told that the target left or is silent.
    pub(super) fn lose_target(&mut self, cause: Departure, now: Time) {
        self.unanswerable = None;
        match &mut self.doubt {
            Some(doubt) if doubt.cause.is_proof() || doubt.cause == cause => {}
            Some(doubt) => (doubt.cause, doubt.asked) = (cause, None),
            none => *none = Some(TargetLoss { cause, before: None, since: now, is_back: false, asked: None }),
        }
    }

    /// The process is told that the target has the method. A loss without proof is void.
    pub(super) fn regain_target(&mut self) {
        if self.doubt.is_some_and(|doubt| !doubt.cause.is_proof()) {
            (self.doubt, self.is_given_up, self.is_to_be_held) = (None, false, false);
        }
    }

    /// The process is told that the daemon is back on another socket, and whether it has the request.
    pub(super) fn resume_target(&mut self, new: SocketId, has: bool, now: Time) {
        let Some(sent) = &mut self.sent else { return };
        sent.is_resumed = has;
        if has {
            sent.target = new;
            (self.doubt, self.unanswerable) = (None, None);
            (self.is_given_up, self.is_to_be_held) = (false, false);
            return;
        }
        sent.is_resumable = false;
        let before = self.doubt.map(|loss| loss.cause);
        self.lose_target(Departure::TransportLost, now);
        if let Some(loss) = &mut self.doubt {
            (loss.before, loss.asked) = (before, None);
        }
    }

    /// Whether a target was chosen: by the policy, or because its picks had left too often.
    pub(super) fn is_decided(&self) -> bool {
        self.is_chosen || self.asked_in_a_row >= TARGET_ASKS_MAX
    }

    /// Whether its caller is wrong about whether the call is held.
    pub(super) fn is_caller_misinformed(&self) -> bool {
        let is_waiting = matches!(self.wait, GraceState::Until(_)) || self.is_to_be_held;
        let is_on_its_way = self.sent.is_some() && self.doubt.is_none();
        is_waiting && !self.is_held || is_on_its_way && self.is_held
    }

    /// Whether its machine has no command left although it has something to do.
    pub(super) fn is_disobeyed(&self, now: Time) -> bool {
        let is_unasked = self.doubt.is_some_and(|loss| loss.asked.is_none());
        is_unasked
            || self.is_said_lost
            || self.is_given_up
            || matches!(self.wait, GraceState::Until(until) if until <= now)
    }
}
