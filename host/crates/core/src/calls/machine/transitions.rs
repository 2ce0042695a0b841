//! Moves a call from one stage to the next. Every step happens at `self.now`.

use std::time::Duration;

use super::{CallMachine, TARGET_ASKS_MAX};
use crate::calls::answer::Answer;
use crate::calls::command::CallCommand;
use crate::calls::open_call::{CallStage, Flight, FlightState, OpenCall, TargetDoubt};
use crate::decisions::{Absence, Choice, Departure, Doubt, rules};
use crate::ids::{CallId, SocketId};
use crate::time::{Time, span_ms};

impl<R> CallMachine<R> {
    /// Goes to a moment and does what was due on the way. Gives the moment, which never goes back.
    pub(super) fn advance(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        // Taken out first: whatever becomes of the call, the same timer is never met again.
        while self.timers.first().is_some_and(|(at, _)| *at <= self.now)
            && let Some((_, id)) = self.timers.pop_first()
        {
            self.wake(id);
        }
        self.now
    }

    /// Looks for a target: asks `target` if there are candidates, else `grace`.
    pub(super) fn resolve(&mut self, id: CallId) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let in_flight = |socket| self.by_target.count(&socket);
        let candidates = self.directory.candidates(&call.room, call.caller, self.reach, in_flight, self.now);
        if candidates.count == 0 {
            return self.ask_grace(id);
        }
        if candidates.sockets.is_empty() {
            return self.settle(id, Answer::Unreachable);
        }
        if candidates.count > 1 && self.warnings.is_due(&call.room, self.now) {
            self.commands.push_back(CallCommand::WarnSeveral {
                user: call.room.user.clone(),
                method: call.room.method.clone(),
                count: candidates.count,
            });
        }
        if call.target_asks_in_a_row >= TARGET_ASKS_MAX
            && let Choice::Pick(index) = rules::target(&candidates.inputs)
            && let Some(socket) = candidates.sockets.get(index as usize)
        {
            return self.aim(id, *socket);
        }
        let ask = call.next_ask();
        let input = call.view(call.target_asks, self.now);
        call.target_asks += 1;
        call.target_asks_in_a_row += 1;
        call.stage = CallStage::Choosing { ask, offered: candidates.sockets };
        self.commands.push_back(CallCommand::AskTarget {
            call: id,
            ask,
            user: call.room.user.clone(),
            input,
            candidates: candidates.inputs,
        });
        let deadline = call.deadline;
        self.wake_at(id, deadline);
    }

    /// A target is found: sends the request, unless the caller would call itself.
    pub(super) fn aim(&mut self, id: CallId, target: SocketId) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        if target == call.caller {
            return self.settle(id, Answer::SameSocket);
        }
        let resumable = self.directory.traits(target).is_some_and(|traits| traits.resumable);
        call.stage = CallStage::InFlight(Flight {
            target,
            sent: self.now,
            resumable,
            is_resumed: false,
            registrations: self.directory.registrations(),
            state: FlightState::Confident,
        });
        let left = call.timeout;
        call.deadline = self.now + left;
        let deadline = call.deadline;
        self.by_target.insert(&target, id);
        self.go_on(id);
        self.commands.push_back(CallCommand::Emit { call: id, target, left, resumable });
        self.wake_at(id, deadline);
    }

    /// The target of a call in flight left, or its replica is not heard from.
    pub(super) fn doubt(&mut self, id: CallId, cause: Departure) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let CallStage::InFlight(flight) = &mut call.stage else { return };
        if let FlightState::Doubtful(doubt) = &mut flight.state {
            // What is proven is not taken back by less, and is not proven twice.
            if doubt.cause.is_proof() || doubt.cause == cause {
                return;
            }
            // One doubt, and more is known of it: it had taken the method back, say, and now is gone altogether.
            doubt.cause = cause;
        } else {
            flight.state = FlightState::Doubtful(TargetDoubt { cause, since: self.now, asks: 0, ask: None });
        }
        self.ask_presence(id);
    }

    /// A call is held until a moment, or its deadline if that is earlier, and its caller is told so.
    pub(super) fn hold(&mut self, id: CallId, since: Time, until: Time) {
        self.wake_at(id, until);
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.held_since = Some(since);
        let left = until.min(call.deadline).saturating_since(self.now);
        self.commands.push_back(CallCommand::Held { call: id, since: self.now.saturating_since(since), left });
    }

    /// A call is held no longer, and its caller is told so if it was told that it is.
    pub(super) fn go_on(&mut self, id: CallId) {
        let Some(since) = self.calls.get_mut(&id).and_then(|call| call.held_since.take()) else { return };
        let since = self.now.saturating_since(since);
        self.commands.push_back(CallCommand::Held { call: id, since, left: Duration::ZERO });
    }

    /// Answers a call and drops it.
    pub(super) fn settle(&mut self, id: CallId, answer: Answer<R>) {
        if self.end(id).is_some() {
            self.commands.push_back(CallCommand::Answer { call: id, answer });
        }
    }

    /// Drops a call with everything that refers to it.
    pub(super) fn end(&mut self, id: CallId) -> Option<OpenCall> {
        let call = self.calls.remove(&id)?;
        self.timers.remove(&(call.wake, id));
        self.by_caller.remove(&call.caller, id);
        self.by_user.remove(&call.room.user, id);
        match &call.stage {
            CallStage::Choosing { .. } => {}
            CallStage::AskingGrace { .. } | CallStage::Waiting => self.waiting.remove(&call.room, id),
            CallStage::InFlight(flight) => self.by_target.remove(&flight.target, id),
        }
        Some(call)
    }

    /// Moves a call's timer to a moment, or to its deadline if that is earlier.
    pub(super) fn wake_at(&mut self, id: CallId, at: Time) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let at = at.min(call.deadline);
        if at != call.wake {
            self.timers.remove(&(call.wake, id));
            self.timers.insert((at, id));
            call.wake = at;
        }
    }

    /// A call's timer went off.
    fn wake(&mut self, id: CallId) {
        let Some(call) = self.calls.get(&id) else { return };
        let is_over = call.deadline <= self.now;
        match &call.stage {
            // A wait that was cut to the deadline ends as any other: nobody came.
            CallStage::Waiting => self.settle(id, Answer::Unavailable),
            CallStage::Choosing { .. } | CallStage::AskingGrace { .. } => self.settle(id, Answer::TimedOut),
            CallStage::InFlight(flight) => match flight.state {
                FlightState::Doubtful(_) if !is_over => self.ask_presence(id),
                FlightState::Doubtful(_) | FlightState::Confident | FlightState::Unanswerable => {
                    self.directory.unanswered(flight.target);
                    self.settle(id, Answer::TimedOut);
                }
            },
        }
    }

    fn ask_grace(&mut self, id: CallId) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let waiting = self.waiting.count(&call.room);
        if waiting >= self.settings.waiting_per_room_max {
            return self.settle(id, Answer::Unavailable);
        }
        let ask = call.next_ask();
        let input = call.view(call.grace_asks, self.now);
        call.grace_asks += 1;
        call.target_asks_in_a_row = 0;
        call.stage = CallStage::AskingGrace { ask };
        self.waiting.insert(&call.room, id);
        let mut past = self.directory.past(&call.room, self.now);
        if self.directory.is_served(&call.room) {
            // It is still there, at a replica that shuts down.
            (past.cause, past.gone_ms) = (Departure::Drained, 0);
        }
        self.commands.push_back(CallCommand::AskGrace {
            call: id,
            ask,
            user: call.room.user.clone(),
            input,
            absence: Absence {
                cause: past.cause,
                gone_ms: past.gone_ms,
                departures: past.departures,
                returns_ms: past.returns_ms,
                waiting: u32::try_from(waiting).unwrap_or(u32::MAX),
                replica_age_ms: span_ms(self.now.saturating_since(Time::ZERO)),
            },
        });
        let deadline = call.deadline;
        self.wake_at(id, deadline);
    }

    pub(super) fn ask_presence(&mut self, id: CallId) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let ask = call.next_ask();
        let mut input = call.view(0, self.now);
        let CallStage::InFlight(flight) = &mut call.stage else { return };
        let FlightState::Doubtful(doubt) = &mut flight.state else { return };
        input.attempt = doubt.asks;
        doubt.asks += 1;
        doubt.ask = Some(ask);
        let past = self.directory.past(&call.room, self.now);
        let doubt = Doubt {
            cause: doubt.cause,
            since_ms: span_ms(self.now.saturating_since(doubt.since)),
            sent_ms: span_ms(self.now.saturating_since(flight.sent)),
            resumable: flight.resumable,
            returned: self.directory.is_served_since(&call.room, flight.registrations),
            departures: past.departures,
            returns_ms: past.returns_ms,
        };
        let user = call.room.user.clone();
        self.commands.push_back(CallCommand::AskPresence { call: id, ask, user, input, doubt });
        let deadline = call.deadline;
        self.wake_at(id, deadline);
    }
}
