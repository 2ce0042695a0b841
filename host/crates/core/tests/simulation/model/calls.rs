//! The model of the events of a call: it arrives, its questions are answered, its target answers.

use super::*;

impl Model {
    pub(super) fn call(
        &mut self,
        caller: SocketId,
        method: &Arc<str>,
        bytes: u32,
        timeout: Duration,
    ) -> Result<CallId, CallRefused> {
        self.touch(caller);
        let user = self.socket(caller).ok_or(CallRefused::UnknownCaller)?.user.clone();
        let room = (user, method.clone());
        if method.is_empty() || method.len() > self.settings.method_bytes_max {
            return Err(CallRefused::InvalidMethod);
        }
        if self.calls.len() >= self.settings.calls_max {
            return Err(CallRefused::TooManyCalls);
        }
        if self.calls.iter().filter(|call| call.room.0 == room.0).count() >= self.settings.calls_per_user_max {
            return Err(CallRefused::TooManyCallsOfUser);
        }
        if !self.is_served(&room) && self.waiting(&room) >= self.settings.waiting_per_room_max {
            return Err(CallRefused::TooManyWaiting);
        }
        self.calls_taken += 1;
        let id = CallId(self.calls_taken);
        self.calls.push(Call {
            id,
            caller,
            room,
            bytes,
            arrived: self.now,
            timeout,
            deadline: self.now + timeout,
            asked: 0,
            target_asks: 0,
            in_a_row: 0,
            grace_asks: 0,
            told: None,
            phase: Phase::Choosing { ask: 0, offered: Vec::new() },
        });
        self.resolve(id);
        Ok(id)
    }

    pub(super) fn choice(&mut self, id: CallId, ask: AskId, choice: Choice) {
        let Some(call) = self.open(id) else { return };
        let Phase::Choosing { ask: open, offered } = &call.phase else { return };
        if *open != ask.0 {
            return;
        }
        let picked = match choice {
            Choice::Reject => return self.answer(id, Answer::Unavailable),
            Choice::Pick(index) => offered.get(index as usize).copied(),
        };
        let room = call.room.clone();
        match picked {
            Some(socket) if self.has(socket, &room) && self.reaches(socket) => self.send(id, socket),
            _ => self.resolve(id),
        }
    }

    pub(super) fn wait(&mut self, id: CallId, ask: AskId, wait_ms: u32) {
        let until = self.now + Duration::from_millis(wait_ms.into());
        let Some(call) = self.open(id) else { return };
        if matches!(call.phase, Phase::AskingGrace { ask: open } if open == ask.0) {
            call.phase = Phase::Waiting { until };
            let arrived = call.arrived;
            if wait_ms == 0 {
                self.answer(id, Answer::Unavailable);
            } else {
                self.tell_held(id, arrived, until);
            }
        }
    }

    pub(super) fn judgement(&mut self, id: CallId, ask: AskId, verdict: Verdict) {
        let now = self.now;
        let Some(call) = self.open(id) else { return };
        let Phase::InFlight { doubt: Some(doubt), .. } = &mut call.phase else { return };
        if doubt.ask != Some(ask.0) {
            return;
        }
        match verdict {
            Verdict::Abort => self.answer(id, Answer::TargetDisconnected),
            Verdict::Hold(hold_ms) => {
                doubt.ask = None;
                doubt.until = now + Duration::from_millis(hold_ms.max(10).into());
                let since = doubt.since;
                if call.told.is_none() {
                    self.tell_held(id, since, Time::from_micros(u64::MAX));
                }
            }
        }
    }

    /// The caller learns that its call is held, until its deadline at most.
    pub(super) fn tell_held(&mut self, id: CallId, since: Time, until: Time) {
        let now = self.now;
        let Some(call) = self.open(id) else { return };
        call.told = Some(since);
        let left = until.min(call.deadline).saturating_since(now);
        self.out.push(CallCommand::Held { call: id, since: now.saturating_since(since), left });
    }

    /// A call that is held no longer; its caller learns that if it knew of it.
    pub(super) fn tell_on(&mut self, id: CallId) {
        let now = self.now;
        if let Some(since) = self.open(id).and_then(|call| call.told.take()) {
            self.out.push(CallCommand::Held { call: id, since: now.saturating_since(since), left: Duration::ZERO });
        }
    }

    pub(super) fn handed_in(&mut self, user: &Arc<str>, id: CallId, result: u64) -> bool {
        let is_meant =
            |call: &&mut Call| call.room.0 == *user && matches!(call.phase, Phase::InFlight { resumable: true, .. });
        let is_taken = self.open(id).filter(is_meant).is_some();
        if is_taken {
            self.answer(id, Answer::Result(result));
        }
        is_taken
    }

    pub(super) fn resumed(&mut self, user: &Arc<str>, old: SocketId, new: SocketId, has: &BTreeSet<CallId>) {
        let meant = |call: &&Call| {
            let is_it = matches!(call.phase, Phase::InFlight { target, resumable: true, .. } if target == old);
            is_it && call.room.0 == *user
        };
        let meant: Vec<CallId> = self.calls.iter().filter(meant).map(|call| call.id).collect();
        let is_gone = old != new && self.socket(old).is_some_and(|socket| socket.user == *user);
        if is_gone {
            self.drop_socket(old, Departure::TransportLost);
        }
        for id in meant {
            let Some(Call { phase: Phase::InFlight { target, resumed, give_up, doubt, .. }, .. }) = self.open(id)
            else {
                continue;
            };
            *resumed = has.contains(&id);
            if *resumed {
                (*target, *give_up, *doubt) = (new, None, None);
                self.tell_on(id);
            } else {
                self.undelivered(id);
                self.doubt_call(id, Departure::TransportLost);
            }
        }
        if is_gone {
            self.doubt_calls(old, None, Departure::TransportLost);
        }
    }

    pub(super) fn undelivered(&mut self, id: CallId) {
        let Some(Call { phase: Phase::InFlight { resumable, resumed: false, doubt, .. }, .. }) = self.open(id) else {
            return;
        };
        let was_resumable = std::mem::take(resumable);
        match doubt {
            Some(_) if was_resumable => self.ask_presence(id),
            Some(_) => {}
            None => self.unanswerable(id),
        }
    }

    pub(super) fn unreachable(&mut self, id: CallId) {
        let Some(Call { phase: Phase::InFlight { resumable, resumed: false, doubt, .. }, .. }) = self.open(id) else {
            return;
        };
        let is_gone = doubt.as_ref().is_some_and(|doubt| PROOFS.contains(&doubt.cause));
        if !*resumable || !is_gone {
            self.answer(id, Answer::Unreachable);
        }
    }

    pub(super) fn result(&mut self, id: CallId, result: u64) {
        let now = self.now;
        let Some(call) = self.open(id) else { return };
        let Phase::InFlight { target, sent, .. } = call.phase else { return };
        if let Some(socket) = self.socket(target) {
            socket.last_packet = now;
            socket.answer_us = (now.as_micros() - sent.as_micros()).clamp(1, u32::MAX.into()) as u32;
            socket.unanswered = 0;
        }
        self.answer(id, Answer::Result(result));
    }

    pub(super) fn unanswerable(&mut self, id: CallId) {
        let at = self.now + Duration::from_secs(1);
        if let Some(Call { phase: Phase::InFlight { give_up, resumed: false, doubt: None, .. }, .. }) = self.open(id) {
            give_up.get_or_insert(at);
        }
    }
}
