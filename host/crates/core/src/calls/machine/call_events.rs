//! Handles the events of a call: it arrives, its questions are answered, its target answers.

use std::sync::Arc;
use std::time::Duration;

use super::{CallMachine, RECHECK_MIN_MS, UNANSWERABLE};
use crate::calls::answer::{Answer, CallRefused};
use crate::calls::open_call::{CallStage, FlightState, OpenCall};
use crate::decisions::{Choice, Verdict};
use crate::ids::{AskId, CallId, SocketId};
use crate::room::RpcRoom;
use crate::time::Time;

impl<R> CallMachine<R> {
    /// A socket calls a method of its own user. The call is sent within `timeout` from now or not at all, and answered within
    /// `timeout` after it was sent: a wait for a daemon takes nothing from the time that the daemon has.
    ///
    /// The host keeps the parameters and the caller's acknowledgement under the id until the call's `Answer` or
    /// `Forget`.
    pub fn handle_call(
        &mut self,
        caller: SocketId,
        method: Arc<str>,
        params_bytes: u32,
        timeout: Duration,
        now: Time,
    ) -> Result<CallId, CallRefused> {
        let now = self.advance(now);
        self.directory.touch(caller, now);
        let user = self.directory.user(caller).ok_or(CallRefused::UnknownCaller)?.clone();
        let room = RpcRoom { user, method };
        self.admit(&room)?;

        self.last_call += 1;
        let id = CallId(self.last_call);
        let deadline = now + timeout;
        self.by_caller.insert(&caller, id);
        self.by_user.insert(&room.user, id);
        self.timers.insert((deadline, id));
        let call = OpenCall {
            caller,
            room,
            params_bytes,
            arrived: now,
            timeout,
            deadline,
            wake: deadline,
            asked: AskId(0),
            target_asks: 0,
            target_asks_in_a_row: 0,
            grace_asks: 0,
            held_since: None,
            stage: CallStage::Waiting,
        };
        self.calls.insert(id, call);
        self.resolve(id);
        Ok(id)
    }

    /// The answer to an `AskTarget`. A pick that has left, is out of reach by now, or was never offered, is asked about
    /// again.
    pub fn handle_choice(&mut self, id: CallId, ask: AskId, choice: Choice, now: Time) {
        self.advance(now);
        let Some(call) = self.calls.get(&id) else { return };
        let CallStage::Choosing { ask: open, offered } = &call.stage else { return };
        if *open != ask {
            return;
        }
        let index = match choice {
            Choice::Reject => return self.settle(id, Answer::Unavailable),
            Choice::Pick(index) => index,
        };
        let picked = usize::try_from(index).ok().and_then(|index| offered.get(index)).copied();
        let is_there =
            |socket: &SocketId| self.directory.has(&call.room, *socket) && self.directory.reaches(*socket, self.reach);
        match picked.filter(is_there) {
            Some(socket) => self.aim(id, socket),
            None => self.resolve(id),
        }
    }

    /// The answer to an `AskGrace`: the call is held for so many milliseconds, but not beyond its deadline. 0 ends it.
    pub fn handle_wait(&mut self, id: CallId, ask: AskId, wait_ms: u32, now: Time) {
        let now = self.advance(now);
        let Some(call) = self.calls.get_mut(&id) else { return };
        if !matches!(call.stage, CallStage::AskingGrace { ask: open } if open == ask) {
            return;
        }
        if wait_ms == 0 {
            return self.settle(id, Answer::Unavailable);
        }
        call.stage = CallStage::Waiting;
        let since = call.arrived;
        self.hold(id, since, now + Duration::from_millis(u64::from(wait_ms)));
    }

    /// The answer to an `AskPresence`.
    pub fn handle_judgement(&mut self, id: CallId, ask: AskId, verdict: Verdict, now: Time) {
        let now = self.advance(now);
        let Some(call) = self.calls.get_mut(&id) else { return };
        let CallStage::InFlight(flight) = &mut call.stage else { return };
        let FlightState::Doubtful(doubt) = &mut flight.state else { return };
        if doubt.ask != Some(ask) {
            return;
        }
        match verdict {
            Verdict::Abort => self.settle(id, Answer::TargetDisconnected),
            Verdict::Hold(hold_ms) => {
                doubt.ask = None;
                let (since, deadline) = (doubt.since, call.deadline);
                if call.held_since.is_none() {
                    self.hold(id, since, deadline);
                }
                let hold_ms = hold_ms.max(RECHECK_MIN_MS);
                self.wake_at(id, now + Duration::from_millis(u64::from(hold_ms)));
            }
        }
    }

    /// The target answered the request of the call, be it in doubt or not. Dropped if the call has ended.
    pub fn handle_result(&mut self, id: CallId, result: R, now: Time) {
        self.handle_answer(id, Answer::Result(result), now);
    }

    /// The target answered, but what it answered cannot be passed on.
    pub fn handle_unusable(&mut self, id: CallId, now: Time) {
        self.handle_answer(id, Answer::Unusable, now);
    }

    /// A daemon hands in the result of a call that was sent to it on an earlier socket. Taken, and `true`, only if the call
    /// is in flight, is one of `user`, and was sent as resumable; else nothing happens.
    pub fn handle_handed_in(&mut self, user: &str, id: CallId, result: R, now: Time) -> bool {
        self.advance(now);
        let is_taken = self.calls.get(&id).is_some_and(|call| {
            *call.room.user == *user && matches!(&call.stage, CallStage::InFlight(flight) if flight.resumable)
        });
        if is_taken {
            self.settle(id, Answer::Result(result));
        }
        is_taken
    }

    fn handle_answer(&mut self, id: CallId, answer: Answer<R>, now: Time) {
        let now = self.advance(now);
        let Some(call) = self.calls.get(&id) else { return };
        let CallStage::InFlight(flight) = &call.stage else { return };
        self.directory.answered(flight.target, now.saturating_since(flight.sent), now);
        self.settle(id, answer);
    }

    /// No answer can come any more: the request could not be sent, or the acknowledgement ended without one.
    ///
    /// If the target has left, the call is in doubt already and stays so. If it is still there, the news of its
    /// leaving may be on the way: the call waits for it for [`UNANSWERABLE`], and then ends as it would at its
    /// deadline.
    pub fn handle_unanswerable(&mut self, id: CallId, now: Time) {
        let now = self.advance(now);
        let Some(call) = self.calls.get_mut(&id) else { return };
        let CallStage::InFlight(flight) = &mut call.stage else { return };
        if flight.is_resumed || !matches!(flight.state, FlightState::Confident) {
            return;
        }
        flight.state = FlightState::Unanswerable;
        self.wake_at(id, now + UNANSWERABLE);
    }

    /// The request did not get to its target, which is certain: nobody will hand its result in. Beyond that it is
    /// [`CallMachine::handle_unanswerable`].
    pub fn handle_undelivered(&mut self, id: CallId, now: Time) {
        let now = self.advance(now);
        let Some(call) = self.calls.get_mut(&id) else { return };
        let CallStage::InFlight(flight) = &mut call.stage else { return };
        if flight.is_resumed {
            return;
        }
        let was_resumable = std::mem::replace(&mut flight.resumable, false);
        match flight.state {
            FlightState::Doubtful(_) if was_resumable => self.ask_presence(id),
            _ => self.handle_unanswerable(id, now),
        }
    }

    /// The request could not be handed over to the target's replica, or its answer was lost with the link: the call
    /// ends at once, be it in doubt or not. Dropped if it is not in flight; and if its target is proven gone, or has resumed it,
    /// and may hand its result in, which does not come by that link.
    pub fn handle_unreachable(&mut self, id: CallId, now: Time) {
        self.advance(now);
        let Some(call) = self.calls.get(&id) else { return };
        let CallStage::InFlight(flight) = &call.stage else { return };
        let is_proven_gone = matches!(&flight.state, FlightState::Doubtful(doubt) if doubt.cause.is_proof());
        if !(flight.is_resumed || flight.resumable && is_proven_gone) {
            self.settle(id, Answer::Unreachable);
        }
    }

    fn admit(&self, room: &RpcRoom) -> Result<(), CallRefused> {
        if !self.directory.is_method(&room.method) {
            return Err(CallRefused::InvalidMethod);
        }
        if self.calls.len() >= self.settings.calls_max {
            return Err(CallRefused::TooManyCalls);
        }
        if self.by_user.count(&room.user) >= self.settings.calls_per_user_max {
            return Err(CallRefused::TooManyCallsOfUser);
        }
        if !self.directory.is_served(room) && self.waiting.count(room) >= self.settings.waiting_per_room_max {
            return Err(CallRefused::TooManyWaiting);
        }
        Ok(())
    }
}
