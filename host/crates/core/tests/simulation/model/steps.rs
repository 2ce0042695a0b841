//! The model of the steps of a call from one phase to the next.

use super::*;

impl Model {
    pub(super) fn wake(&mut self, id: CallId) {
        let now = self.now;
        let Some(call) = self.open(id).cloned() else { return };
        match call.phase {
            Phase::Waiting { .. } => self.answer(id, Answer::Unavailable),
            Phase::InFlight { doubt: Some(_), .. } if call.deadline > now => self.ask_presence(id),
            Phase::InFlight { target, .. } => {
                if let Some(socket) = self.socket(target) {
                    socket.unanswered += 1;
                }
                self.answer(id, Answer::TimedOut);
            }
            Phase::Choosing { .. } | Phase::AskingGrace { .. } => self.answer(id, Answer::TimedOut),
        }
    }

    pub(super) fn resolve(&mut self, id: CallId) {
        let Some(call) = self.open(id).cloned() else { return };
        let members: Vec<(SocketId, i128)> = self
            .registered
            .iter()
            .filter(|entry| entry.room == call.room)
            .map(|entry| (entry.socket, entry.at))
            .collect();
        if members.is_empty() {
            return self.ask_grace(id);
        }
        let within_reach: Vec<(SocketId, i128)> =
            members.iter().copied().filter(|(socket, _)| self.reaches(*socket)).collect();
        let Some((first, _)) = within_reach.first().copied() else { return self.answer(id, Answer::Unreachable) };
        let now = self.now;
        let is_quiet = self.warned.iter().any(|(at, room)| *room == call.room && millis(*at, now) < 60_000);
        if members.len() > 1 && !is_quiet {
            self.warned.push((now, call.room.clone()));
            let (user, method) = call.room.clone();
            self.out.push(CallCommand::WarnSeveral { user, method, count: members.len() });
        }
        if call.in_a_row == 3 {
            return self.send(id, first);
        }
        let offered: Vec<(SocketId, i128)> = within_reach.into_iter().take(32).collect();
        let candidates =
            offered.iter().map(|(socket, at)| self.candidate(*socket, *at, &call.room, call.caller)).collect();
        let input = self.view(&call, call.target_asks);
        let Some(call) = self.open(id) else { return };
        call.asked += 1;
        call.target_asks += 1;
        call.in_a_row += 1;
        let ask = call.asked;
        call.phase = Phase::Choosing { ask, offered: offered.into_iter().map(|(socket, _)| socket).collect() };
        let user = call.room.0.clone();
        self.out.push(CallCommand::AskTarget { call: id, ask: AskId(ask), user, input, candidates });
    }

    pub(super) fn send(&mut self, id: CallId, target: SocketId) {
        let (now, registrations) = (self.now, self.registrations);
        let resumable = self.socket(target).is_some_and(|socket| socket.traits.resumable);
        let Some(call) = self.open(id) else { return };
        if call.caller == target {
            return self.answer(id, Answer::SameSocket);
        }
        call.phase =
            Phase::InFlight { target, sent: now, resumable, resumed: false, registrations, give_up: None, doubt: None };
        let left = call.timeout;
        call.deadline = now + left;
        self.tell_on(id);
        self.out.push(CallCommand::Emit { call: id, target, left, resumable });
    }

    pub(super) fn doubt_calls(&mut self, socket: SocketId, room: Option<&Room>, cause: Departure) {
        for id in self.calls.iter().map(|call| call.id).collect::<Vec<_>>() {
            let Some(call) = self.open(id) else { continue };
            if room.is_some_and(|room| *room != call.room) {
                continue;
            }
            if call.target() == Some(socket) {
                self.doubt_call(id, cause);
            }
        }
    }

    pub(super) fn doubt_call(&mut self, id: CallId, cause: Departure) {
        let now = self.now;
        let Some(Call { phase: Phase::InFlight { doubt, .. }, .. }) = self.open(id) else { return };
        if doubt.as_ref().is_some_and(|old| PROOFS.contains(&old.cause) || old.cause == cause) {
            return;
        }
        doubt.get_or_insert(Doubt { cause, since: now, asks: 0, ask: None, until: now }).cause = cause;
        self.ask_presence(id);
    }

    pub(super) fn ask_grace(&mut self, id: CallId) {
        let Some(call) = self.open(id).cloned() else { return };
        let waiting = self.waiting(&call.room);
        if waiting >= self.settings.waiting_per_room_max {
            return self.answer(id, Answer::Unavailable);
        }
        let past = self.log.past(&call.room, self.now);
        let input = self.view(&call, call.grace_asks);
        let absence = Absence {
            cause: past.cause,
            gone_ms: past.gone_ms,
            departures: past.departures,
            returns_ms: past.returns_ms,
            waiting: waiting as u32,
            replica_age_ms: millis(Time::ZERO, self.now),
        };
        let Some(call) = self.open(id) else { return };
        call.asked += 1;
        call.grace_asks += 1;
        call.in_a_row = 0;
        call.phase = Phase::AskingGrace { ask: call.asked };
        let (ask, user) = (AskId(call.asked), call.room.0.clone());
        self.out.push(CallCommand::AskGrace { call: id, ask, user, input, absence });
    }

    pub(super) fn ask_presence(&mut self, id: CallId) {
        let now = self.now;
        let Some(call) = self.open(id) else { return };
        call.asked += 1;
        let ask = call.asked;
        let Phase::InFlight { doubt: Some(doubt), .. } = &mut call.phase else { return };
        let attempt = doubt.asks;
        doubt.asks += 1;
        doubt.ask = Some(ask);
        let call = call.clone();
        let Phase::InFlight { sent, resumable, registrations, doubt: Some(doubt), .. } = &call.phase else { return };
        let is_return = |entry: &Registered| entry.room == call.room && entry.number > *registrations;
        let past = self.log.past(&call.room, now);
        let input = self.view(&call, attempt);
        let doubt = decisions::Doubt {
            cause: doubt.cause,
            since_ms: millis(doubt.since, now),
            sent_ms: millis(*sent, now),
            resumable: *resumable,
            returned: self.registered.iter().any(is_return),
            departures: past.departures,
            returns_ms: past.returns_ms,
        };
        let user = call.room.0.clone();
        self.out.push(CallCommand::AskPresence { call: id, ask: AskId(ask), user, input, doubt });
    }

    pub(super) fn answer(&mut self, id: CallId, answer: Answer<u64>) {
        self.calls.retain(|call| call.id != id);
        self.out.push(CallCommand::Answer { call: id, answer });
    }
}
