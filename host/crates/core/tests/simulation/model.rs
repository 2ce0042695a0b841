//! The reference model: what a call machine is meant to do, over plain lists that are searched from end to end. It keeps no index and
//! no timer: counts and moments are worked out whenever they are wanted. It predicts every command.

mod calls;
mod steps;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pointwork_core::decisions::{self, Absence, Candidate, Choice, Departure, Traits, Verdict};
use pointwork_core::{Answer, AskId, CallCommand, CallId, CallRefused, CallSettings, RegisterError, SocketId, Time};

use crate::input::{Input, Returned};
use crate::past::Log;

type Room = (Arc<str>, Arc<str>);

/// What proves that a socket is gone.
const PROOFS: [Departure; 5] =
    [Departure::Closed, Departure::TransportLost, Departure::ReplicaLost, Departure::Drained, Departure::Evicted];

pub(crate) struct Model {
    settings: CallSettings,
    now: Time,
    link_is_up: bool,
    sockets: Vec<Socket>,
    /// Every registration that stands, oldest first.
    registered: Vec<Registered>,
    registrations: u64,
    log: Log,
    pub(crate) calls: Vec<Call>,
    calls_taken: u64,
    warned: Vec<(Time, Room)>,
    out: Vec<CallCommand<u64>>,
}

struct Socket {
    id: SocketId,
    user: Arc<str>,
    replica: u32,
    traits: Traits,
    last_packet: Time,
    answer_us: u32,
    unanswered: u32,
}

struct Registered {
    number: u64,
    /// In microseconds; negative if it was before the replica began to serve.
    at: i128,
    socket: SocketId,
    room: Room,
    recovered: bool,
}

#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) id: CallId,
    caller: SocketId,
    pub(crate) room: Room,
    bytes: u32,
    arrived: Time,
    timeout: Duration,
    deadline: Time,
    asked: u32,
    target_asks: u32,
    in_a_row: u32,
    grace_asks: u32,
    /// Since when it is held, if its caller was told so.
    told: Option<Time>,
    pub(crate) phase: Phase,
}

#[derive(Clone)]
pub(crate) enum Phase {
    Choosing {
        ask: u32,
        offered: Vec<SocketId>,
    },
    AskingGrace {
        ask: u32,
    },
    Waiting {
        until: Time,
    },
    InFlight {
        target: SocketId,
        sent: Time,
        resumable: bool,
        resumed: bool,
        registrations: u64,
        give_up: Option<Time>,
        doubt: Option<Doubt>,
    },
}

#[derive(Clone)]
pub(crate) struct Doubt {
    cause: Departure,
    since: Time,
    asks: u32,
    ask: Option<u32>,
    until: Time,
}

impl Call {
    fn wake(&self) -> Time {
        let earlier = match &self.phase {
            Phase::Waiting { until } => *until,
            Phase::InFlight { doubt: Some(doubt), .. } if doubt.ask.is_none() => doubt.until,
            Phase::InFlight { doubt: None, give_up: Some(at), .. } => *at,
            _ => self.deadline,
        };
        earlier.min(self.deadline)
    }

    fn is_absent(&self) -> bool {
        matches!(self.phase, Phase::AskingGrace { .. } | Phase::Waiting { .. })
    }

    fn target(&self) -> Option<SocketId> {
        match self.phase {
            Phase::InFlight { target, .. } => Some(target),
            _ => None,
        }
    }
}

fn millis(from: Time, to: Time) -> u32 {
    u32::try_from((to.as_micros() - from.as_micros()) / 1_000).unwrap_or(u32::MAX)
}

impl Model {
    pub(crate) fn new(settings: CallSettings) -> Model {
        Model {
            settings,
            now: Time::ZERO,
            link_is_up: true,
            sockets: Vec::new(),
            registered: Vec::new(),
            registrations: 0,
            log: Log::default(),
            calls: Vec::new(),
            calls_taken: 0,
            warned: Vec::new(),
            out: Vec::new(),
        }
    }

    /// What the machine is expected to return and to command.
    pub(crate) fn give(&mut self, input: &Input, now: Time) -> (Returned, Vec<CallCommand<u64>>) {
        self.now = self.now.max(now);
        while let Some(due) = self.calls.iter().map(|call| (call.wake(), call.id)).min()
            && due.0 <= self.now
        {
            self.wake(due.1);
        }
        let returned = self.take(input);
        (returned, std::mem::take(&mut self.out))
    }

    pub(crate) fn next_wake(&self) -> Option<Time> {
        self.calls.iter().map(Call::wake).min()
    }

    pub(crate) fn in_flight(&self, socket: SocketId) -> usize {
        self.calls.iter().filter(|call| call.target() == Some(socket)).count()
    }

    pub(crate) fn sockets(&self) -> usize {
        self.sockets.len()
    }

    fn take(&mut self, input: &Input) -> Returned {
        match input {
            Input::Connect(id, user, replica, traits) => self.connect(*id, user, *replica, *traits),
            Input::Packet(id) => self.touch(*id),
            Input::Register(id, method) => {
                self.touch(*id);
                return Returned::Registered(self.register(*id, method, Duration::ZERO));
            }
            Input::Registered(id, method, age) => return Returned::Registered(self.register(*id, method, *age)),
            Input::Unregister(id, method) => return Returned::Registered(self.unregister(*id, method)),
            Input::Disconnect(id, cause) => self.disconnect(*id, *cause),
            Input::Forget(id) => return Returned::Forgotten(self.forget(*id)),
            Input::Link(is_up) => self.link_is_up = *is_up,
            Input::Call(caller, method, bytes, timeout) => {
                return Returned::Called(self.call(*caller, method, *bytes, *timeout));
            }
            Input::Choice(id, ask, choice) => self.choice(*id, *ask, *choice),
            Input::Wait(id, ask, wait_ms) => self.wait(*id, *ask, *wait_ms),
            Input::Judgement(id, ask, verdict) => self.judgement(*id, *ask, *verdict),
            Input::Result(id, result) => self.result(*id, *result),
            Input::Unanswerable(id) => self.unanswerable(*id),
            Input::HandedIn(user, id, result) => return Returned::HandedIn(self.handed_in(user, *id, *result)),
            Input::Resumed(user, old, new, has) => self.resumed(user, *old, *new, has),
            Input::Undelivered(id) => self.undelivered(*id),
            Input::Unreachable(id) => self.unreachable(*id),
            Input::Timeout => {}
        }
        Returned::Nothing
    }

    fn connect(&mut self, id: SocketId, user: &Arc<str>, replica: u32, traits: Traits) {
        if self.sockets.iter().any(|socket| socket.id == id && socket.user != *user) {
            self.disconnect(id, Departure::Closed);
        }
        let now = self.now;
        match self.socket(id) {
            Some(socket) => (socket.replica, socket.traits, socket.last_packet) = (replica, traits, now),
            None => self.sockets.push(Socket {
                id,
                user: user.clone(),
                replica,
                traits,
                last_packet: now,
                answer_us: 0,
                unanswered: 0,
            }),
        }
    }

    fn register(&mut self, id: SocketId, method: &Arc<str>, age: Duration) -> Result<(), RegisterError> {
        if method.is_empty() || method.len() > self.settings.method_bytes_max {
            return Err(RegisterError::InvalidMethod);
        }
        let room = (self.socket(id).ok_or(RegisterError::UnknownSocket)?.user.clone(), method.clone());
        if self.has(id, &room) {
            return Ok(());
        }
        if self.registered.iter().filter(|entry| entry.socket == id).count() >= self.settings.methods_per_socket_max {
            return Err(RegisterError::TooManyMethods);
        }
        let is_first = !self.is_served(&room);
        let lost = [Departure::TransportLost, Departure::ReplicaLost, Departure::ReplicaSilent, Departure::Drained];
        let past = self.log.past(&room, self.now);
        let recovered = is_first && past.is_absent && lost.contains(&past.cause);
        if is_first {
            self.log.returned(&room, self.now);
        }
        self.registrations += 1;
        let at = i128::from(self.now.as_micros()) - age.as_micros() as i128;
        self.registered.push(Registered { number: self.registrations, at, socket: id, room: room.clone(), recovered });
        // Stable: of the same moment, what became known first stays first.
        self.registered.sort_by_key(|entry| entry.at);
        let mut trusted = Vec::new();
        for call in &mut self.calls {
            if let Phase::InFlight { target, give_up, doubt, .. } = &mut call.phase
                && (*target, &call.room) == (id, &room)
                && doubt.as_ref().is_some_and(|doubt| !PROOFS.contains(&doubt.cause))
            {
                (*doubt, *give_up) = (None, None);
                trusted.push(call.id);
            }
        }
        trusted.into_iter().for_each(|id| self.tell_on(id));
        let absent: Vec<CallId> =
            self.calls.iter().filter(|call| call.is_absent() && call.room == room).map(|call| call.id).collect();
        for id in absent {
            self.resolve(id);
        }
        Ok(())
    }

    fn unregister(&mut self, id: SocketId, method: &Arc<str>) -> Result<(), RegisterError> {
        self.touch(id);
        if method.is_empty() || method.len() > self.settings.method_bytes_max {
            return Err(RegisterError::InvalidMethod);
        }
        let room = (self.socket(id).ok_or(RegisterError::UnknownSocket)?.user.clone(), method.clone());
        if self.leave(id, &room, Departure::Unregistered) {
            self.doubt_calls(id, Some(&room), Departure::Unregistered);
        }
        Ok(())
    }

    fn disconnect(&mut self, id: SocketId, cause: Departure) {
        self.drop_socket(id, cause);
        if cause != Departure::Unregistered {
            self.doubt_calls(id, None, cause);
        }
    }

    fn drop_socket(&mut self, id: SocketId, cause: Departure) {
        let mut rooms: Vec<Room> =
            self.registered.iter().filter(|entry| entry.socket == id).map(|entry| entry.room.clone()).collect();
        rooms.sort();
        for room in rooms {
            self.leave(id, &room, cause);
        }
        self.sockets.retain(|socket| socket.id != id);
        let own: Vec<CallId> = self.calls.iter().filter(|call| call.caller == id).map(|call| call.id).collect();
        for call in own {
            self.calls.retain(|open| open.id != call);
            self.out.push(CallCommand::Forget { call });
        }
    }

    pub(crate) fn has_called(&self, id: SocketId) -> bool {
        self.calls.iter().any(|call| call.caller == id)
    }

    fn forget(&mut self, id: SocketId) -> bool {
        let is_done = self.socket(id).is_some() && !self.has_called(id);
        self.registered.retain(|entry| !is_done || entry.socket != id);
        self.sockets.retain(|socket| !is_done || socket.id != id);
        is_done
    }

    fn leave(&mut self, id: SocketId, room: &Room, cause: Departure) -> bool {
        if !self.has(id, room) {
            return false;
        }
        self.registered.retain(|entry| !(entry.socket == id && entry.room == *room));
        let was_last = !self.is_served(room);
        self.log.left(room, cause, was_last, self.now);
        true
    }

    fn candidate(&self, id: SocketId, registered: i128, room: &Room, caller: SocketId) -> Candidate {
        let recovered =
            self.registered.iter().any(|entry| entry.socket == id && entry.room == *room && entry.recovered);
        let socket = self.sockets.iter().find(|socket| socket.id == id).expect("a member is connected");
        let known = !socket.traits.foreign;
        let registered_ms = (i128::from(self.now.as_micros()) - registered) / 1_000;
        Candidate {
            replica: socket.replica,
            registered_ms: if known { u32::try_from(registered_ms).unwrap_or(u32::MAX) } else { u32::MAX },
            idle_ms: if known { millis(socket.last_packet, self.now) } else { u32::MAX },
            in_flight: if known { self.in_flight(id) as u32 } else { 0 },
            answer_us: if known { socket.answer_us } else { 0 },
            unanswered: if known { socket.unanswered } else { 0 },
            traits: Traits { caller: id == caller, recovered, ..socket.traits },
        }
    }

    fn view(&self, call: &Call, attempt: u32) -> decisions::Call {
        decisions::Call {
            method: call.room.1.clone(),
            params_bytes: call.bytes,
            waited_ms: millis(call.arrived, self.now),
            left_ms: millis(self.now, call.deadline),
            attempt,
        }
    }

    fn touch(&mut self, id: SocketId) {
        let now = self.now;
        if let Some(socket) = self.socket(id) {
            socket.last_packet = now;
        }
    }

    fn socket(&mut self, id: SocketId) -> Option<&mut Socket> {
        self.sockets.iter_mut().find(|socket| socket.id == id)
    }

    fn open(&mut self, id: CallId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.id == id)
    }

    fn has(&self, id: SocketId, room: &Room) -> bool {
        self.registered.iter().any(|entry| entry.socket == id && entry.room == *room)
    }

    fn reaches(&self, id: SocketId) -> bool {
        self.link_is_up || self.sockets.iter().any(|socket| socket.id == id && socket.replica == 0)
    }

    fn is_served(&self, room: &Room) -> bool {
        self.registered.iter().any(|entry| entry.room == *room)
    }

    fn waiting(&self, room: &Room) -> usize {
        self.calls.iter().filter(|call| call.is_absent() && call.room == *room).count()
    }
}
