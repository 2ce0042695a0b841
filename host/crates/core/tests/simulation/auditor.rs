//! The invariants of the call machine's documentation, checked after every step from nothing but what went in and what
//! came out. It predicts nothing and shares nothing with the model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pointwork_core::decisions::{Departure, Verdict};
use pointwork_core::{Answer, CallCommand, CallId, CallLoad, CallMachine, RpcRoom, SocketId, Time};

use crate::input::{Input, Returned};

#[derive(Default)]
pub(crate) struct Auditor {
    users: BTreeMap<SocketId, Arc<str>>,
    replicas: BTreeMap<SocketId, u32>,
    link_is_down: bool,
    members: BTreeSet<(RpcRoom, SocketId)>,
    calls: BTreeMap<CallId, Known>,
    /// How calls ended, for the proof that a simulation reaches all ends.
    pub(crate) ends: BTreeMap<&'static str, usize>,
}

struct Known {
    caller: SocketId,
    room: RpcRoom,
    timeout: Duration,
    deadline: Time,
    caller_left: bool,
    emitted: Option<SocketId>,
    /// The socket that it is at: the one that it was sent to, or the one that resumed it.
    at: Option<SocketId>,
    /// Its daemon was told its id, and has got the request for all that is known.
    is_resumable: bool,
    /// Its daemon is back on another socket, and has it.
    is_resumed: bool,
    /// Its caller was told that it is held.
    is_held: bool,
    /// The target left, and whether that is proven.
    target_left: Option<bool>,
    was_aborted: bool,
    is_said_unreachable: bool,
    result: Option<u64>,
    has_ended: bool,
}

impl Auditor {
    /// To be told before the machine is.
    pub(crate) fn before(&mut self, input: &Input) {
        match input {
            Input::Connect(socket, user, replica, _) => {
                if self.users.get(socket).is_some_and(|known| known != user) {
                    self.leave(*socket, None, Departure::Closed);
                }
                self.users.insert(*socket, user.clone());
                self.replicas.insert(*socket, *replica);
            }
            Input::Unregister(socket, method) => self.leave(*socket, Some(method), Departure::Unregistered),
            Input::Disconnect(socket, cause) => {
                self.leave(*socket, None, *cause);
                self.users.remove(socket);
            }
            Input::Link(is_up) => self.link_is_down = !is_up,
            Input::Unreachable(call) => self.known(*call).is_said_unreachable = true,
            // Of one that was resumed it is no news.
            Input::Undelivered(call) => {
                let known = self.known(*call);
                known.is_resumable &= known.is_resumed;
            }
            Input::Resumed(user, old, new, has) => {
                if old != new && self.users.get(old) == Some(user) {
                    self.leave(*old, None, Departure::TransportLost);
                    self.users.remove(old);
                }
                for (id, known) in self.resumable(user, *old) {
                    if !has.contains(&id) {
                        (known.is_resumable, known.is_resumed, known.target_left) = (false, false, Some(true));
                    }
                }
            }
            Input::HandedIn(user, call, result) => {
                let known = self.known(*call);
                if known.is_resumable && known.room.user == *user {
                    known.result.get_or_insert(*result);
                }
            }
            Input::Judgement(call, _, Verdict::Abort) => self.known(*call).was_aborted = true,
            Input::Result(call, result) => {
                let known = self.known(*call);
                if known.emitted.is_some() {
                    known.result.get_or_insert(*result);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn after(
        &mut self,
        input: &Input,
        returned: &Returned,
        told: &[CallCommand<u64>],
        machine: &CallMachine<u64>,
        now: Time,
    ) {
        match (input, returned) {
            (Input::Register(socket, method) | Input::Registered(socket, method, _), Returned::Registered(Ok(()))) => {
                self.members.insert((self.room(*socket, method), *socket));
            }
            (Input::Call(caller, method, _, timeout), Returned::Called(Ok(id))) => {
                let known = Known {
                    caller: *caller,
                    room: self.room(*caller, method),
                    timeout: *timeout,
                    deadline: now + *timeout,
                    caller_left: false,
                    emitted: None,
                    at: None,
                    is_resumable: false,
                    is_resumed: false,
                    is_held: false,
                    target_left: None,
                    was_aborted: false,
                    is_said_unreachable: false,
                    result: None,
                    has_ended: false,
                };
                assert!(self.calls.insert(*id, known).is_none(), "an id is never used twice");
            }
            _ => {}
        }
        for command in told {
            self.hear(command, now);
        }
        // What was due before it came first.
        match (input, returned) {
            (Input::Forget(socket), Returned::Forgotten(true)) => self.forget(*socket),
            (Input::Resumed(user, old, new, has), _) => {
                for (id, known) in self.resumable(user, *old) {
                    if has.contains(&id) {
                        (known.at, known.is_resumed) = (Some(*new), true);
                        (known.target_left, known.was_aborted) = (None, false);
                    }
                }
            }
            (Input::Register(socket, method) | Input::Registered(socket, method, _), Returned::Registered(Ok(()))) => {
                self.trust(*socket, &self.room(*socket, method))
            }
            _ => {}
        }
        self.check(machine, now);
    }

    fn hear(&mut self, command: &CallCommand<u64>, now: Time) {
        match command {
            CallCommand::Held { call, left, .. } => {
                self.check_open(*call);
                let known = self.known(*call);
                assert!(
                    known.is_held || *left > Duration::ZERO || known.deadline == now,
                    "told that it goes on, untold that it is held"
                );
                assert!(now + *left <= known.deadline, "in-time: held beyond its deadline");
                known.is_held = *left > Duration::ZERO;
            }
            CallCommand::Emit { call, target, left, resumable } => {
                let room = self.known(*call).room.clone();
                let is_member = self.members.contains(&(room, *target));
                let known = self.known(*call);
                assert_eq!(known.emitted, None, "sent-once: {call:?}");
                assert!(is_member && known.caller != *target, "a request goes to another daemon that is there");
                assert!(!self.link_is_down || self.replicas[target] == 0, "sent over a link that is down");
                let known = self.known(*call);
                assert_eq!(*left, known.timeout, "in-time: a daemon has the whole timeout");
                known.deadline = now + known.timeout;
                known.emitted = Some(*target);
                known.at = Some(*target);
                known.is_resumable = *resumable;
                assert!(!known.is_held, "sent, and its caller still believes that it is held");
            }
            CallCommand::Answer { call, answer } => self.hear_answer(*call, answer),
            CallCommand::Forget { call } => {
                assert!(self.known(*call).caller_left, "one-answer: {call:?} was forgotten, its caller is there");
                self.end(*call, "forgotten");
            }
            CallCommand::AskTarget { call, candidates, .. } => {
                assert!((1..=32).contains(&candidates.len()));
                assert!(!self.link_is_down || candidates.iter().all(|one| one.replica == 0), "out of reach");
                let ages = candidates.iter().filter(|one| !one.traits.foreign).map(|one| one.registered_ms);
                assert!(ages.is_sorted_by(|one, next| one >= next), "oldest registration first");
                self.check_open(*call);
            }
            CallCommand::AskGrace { call, absence, .. } => {
                assert!(absence.returns_ms.len() <= 8);
                self.check_open(*call);
            }
            CallCommand::AskPresence { call, doubt, .. } => {
                assert!(doubt.returns_ms.len() <= 8);
                self.check_open(*call);
                assert!(
                    self.known(*call).target_left.is_some(),
                    "positive-evidence: {call:?} is doubted for no reason"
                );
            }
            CallCommand::WarnSeveral { count, .. } => assert!(*count > 1),
        }
    }

    fn hear_answer(&mut self, call: CallId, answer: &Answer<u64>) {
        let link_is_down = self.link_is_down;
        let served_by: Vec<u32> = self.served_by(&self.calls[&call].room);
        let known = self.known(call);
        match answer {
            Answer::Result(result) => {
                assert_eq!(Some(*result), known.result, "no-invented-success: {call:?}");
            }
            Answer::TargetDisconnected => {
                let has_evidence = known.emitted.is_some() && known.target_left.is_some() && known.was_aborted;
                assert!(has_evidence, "positive-evidence: {call:?}");
            }
            Answer::Unavailable | Answer::SameSocket => {
                assert_eq!(known.emitted, None, "{call:?} was sent and cannot have been unavailable");
            }
            Answer::Unreachable if known.emitted.is_some() => {
                let is_gone = known.is_resumable && known.target_left == Some(true);
                assert!(!is_gone, "unreachable-is-said: {call:?} may yet be handed in");
                assert!(known.is_said_unreachable, "unreachable-is-said: {call:?}");
            }
            Answer::Unreachable => {
                let is_beyond = !served_by.is_empty() && served_by.iter().all(|replica| *replica != 0);
                assert!(link_is_down && is_beyond, "unreachable-is-said: {call:?}");
            }
            Answer::TimedOut => {}
            Answer::Unusable => panic!("no daemon of the simulation answers what cannot be passed on"),
        }
        self.end(call, answer.error().unwrap_or("result"));
    }

    fn end(&mut self, call: CallId, how: &'static str) {
        self.check_open(call);
        self.known(call).has_ended = true;
        *self.ends.entry(how).or_default() += 1;
    }

    fn check_open(&mut self, call: CallId) {
        assert!(!self.known(call).has_ended, "one-answer: {call:?} had ended");
    }

    fn check(&self, machine: &CallMachine<u64>, now: Time) {
        let open: Vec<&Known> = self.calls.values().filter(|known| !known.has_ended).collect();
        for known in &open {
            assert!(known.deadline > now || known.deadline == now && machine.poll_timeout() == Some(now), "in-time");
        }
        let load = machine.load();
        assert_eq!((load.calls, load.timers), (open.len(), open.len()), "one-timer");
        let flying: Vec<SocketId> = open.iter().filter_map(|known| known.at).collect();
        assert_eq!(load.in_flight, flying.len(), "in-flight");
        // Of those that left, too: nobody loses track of the calls that are in flight to them.
        for socket in self.users.keys().chain(&flying) {
            let expected = flying.iter().filter(|target| *target == socket).count();
            assert_eq!(machine.in_flight(*socket), expected, "in-flight");
        }
        let can_wait = |known: &&&Known| known.emitted.is_none() && !machine.directory().is_served(&known.room);
        assert!(load.waiting <= open.iter().filter(can_wait).count(), "no-waiting-while-served");
        let callers: BTreeSet<SocketId> = open.iter().map(|known| known.caller).collect();
        let users: BTreeSet<&str> = open.iter().map(|known| &*known.room.user).collect();
        assert_eq!((load.callers, load.calling_users), (callers.len(), users.len()), "one-timer");
        assert_eq!(load.sockets, self.users.len());
        let rooms: BTreeSet<&RpcRoom> = self.members.iter().map(|(room, _)| room).collect();
        assert_eq!(load.rooms, rooms.len());
        if self.users.is_empty() {
            let left = CallLoad { remembered_rooms: load.remembered_rooms, ..CallLoad::default() };
            assert_eq!((load, machine.poll_timeout()), (left, None), "nothing-left");
        }
    }

    /// The socket leaves the room of a method, or all its rooms.
    fn leave(&mut self, socket: SocketId, method: Option<&Arc<str>>, cause: Departure) {
        let is_left = |room: &RpcRoom| method.is_none_or(|method| *method == room.method);
        let members = &self.members;
        for known in self.calls.values_mut().filter(|known| known.at == Some(socket)) {
            // One that was forgotten is no member any more, but whoever tells of its end means it.
            let is_concerned = method.is_none() || members.contains(&(known.room.clone(), socket));
            if is_left(&known.room) && (is_concerned || known.target_left.is_some()) {
                known.target_left = Some(known.target_left == Some(true) || cause.is_proof());
            }
        }
        for known in self.calls.values_mut().filter(|known| known.caller == socket) {
            known.caller_left |= method.is_none();
        }
        self.members.retain(|(room, member)| *member != socket || !is_left(room));
    }

    /// The socket has the method, again perhaps: whatever was not proven of it did not happen.
    fn trust(&mut self, socket: SocketId, room: &RpcRoom) {
        for known in self.calls.values_mut().filter(|known| known.at == Some(socket) && known.room == *room) {
            if known.target_left == Some(false) {
                (known.target_left, known.was_aborted) = (None, false);
            }
        }
    }

    fn forget(&mut self, socket: SocketId) {
        self.members.retain(|(_, member)| *member != socket);
        assert!(self.users.remove(&socket).is_some(), "what is forgotten was there");
        let has_called = |known: &Known| !known.has_ended && known.caller == socket;
        assert!(!self.calls.values().any(has_called), "forgotten with calls of its own");
    }

    /// The open calls of a user at a socket, whose results may be handed in.
    fn resumable(&mut self, user: &str, at: SocketId) -> impl Iterator<Item = (CallId, &mut Known)> {
        let is_meant = move |known: &Known| {
            !known.has_ended && known.is_resumable && known.at == Some(at) && *known.room.user == *user
        };
        self.calls.iter_mut().filter(move |(_, known)| is_meant(known)).map(|(id, known)| (*id, known))
    }

    fn served_by(&self, room: &RpcRoom) -> Vec<u32> {
        let members = self.members.iter().filter(|(of, _)| of == room);
        members.map(|(_, socket)| self.replicas[socket]).collect()
    }

    fn room(&self, socket: SocketId, method: &Arc<str>) -> RpcRoom {
        RpcRoom { user: self.users[&socket].clone(), method: method.clone() }
    }

    fn known(&mut self, call: CallId) -> &mut Known {
        self.calls.get_mut(&call).expect("a call that was taken on")
    }
}
