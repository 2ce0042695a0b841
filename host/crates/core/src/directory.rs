//! Which sockets are connected, what they registered, and what a candidate is told by.
//!
//! One entry per socket holds all its methods, so that a socket is either there with all of them or gone with all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::call::{SocketId, message};
use crate::decision::{CANDIDATES_MAX, Candidate, Departure, Traits};
use crate::history::{History, Past};
use crate::settings::Settings;
use crate::time::{Time, span_ms, span_us};

/// A method of a user: what the room `rpc:U:METHOD` is on the wire ([`crate::room::rpc`]).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RpcRoom {
    /// The user.
    pub user: Arc<str>,
    /// The method.
    pub method: Arc<str>,
}

/// Why a method was not registered or unregistered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// The method is empty or longer than [`Settings::method_bytes_max`].
    #[error("the method is empty or too long")]
    InvalidMethod,
    /// [`Settings::methods_per_socket_max`] is reached.
    #[error("the socket has too many methods")]
    TooManyMethods,
    /// The socket is not connected (any more).
    #[error("the socket is not connected")]
    UnknownSocket,
}

impl RegisterError {
    /// What the client is told in its `rpc-error`.
    pub const fn message(self) -> &'static str {
        match self {
            RegisterError::InvalidMethod => message::INVALID_METHOD,
            RegisterError::TooManyMethods => message::TOO_MANY_METHODS,
            RegisterError::UnknownSocket => message::INTERNAL,
        }
    }
}

/// The sockets of a shard of users and their methods.
#[derive(Debug)]
pub struct Directory {
    settings: Settings,
    sockets: HashMap<SocketId, Socket>,
    /// Never holds an empty room.
    rooms: HashMap<RpcRoom, Vec<Member>>,
    history: History,
    /// Counts registrations, which orders the members of a room even within a microsecond.
    registrations: u64,
}

#[derive(Debug)]
struct Socket {
    user: Arc<str>,
    traits: Traits,
    last_packet: Time,
    answer_us: u32,
    unanswered: u32,
    /// Each method with its registration. In order, because a disconnect walks over it.
    methods: BTreeMap<Arc<str>, u64>,
}

#[derive(Debug)]
struct Member {
    registration: u64,
    registered: Time,
    socket: SocketId,
    /// It came back after a loss.
    recovered: bool,
}

/// The candidates for one call.
#[derive(Debug, Default)]
pub struct Candidates {
    /// Their sockets, in the same order as `inputs`.
    pub sockets: Vec<SocketId>,
    /// What a policy is told of them, oldest registration first; at most [`CANDIDATES_MAX`].
    pub inputs: Vec<Candidate>,
    /// How many sockets have the method, those beyond [`CANDIDATES_MAX`] included.
    pub count: usize,
}

impl Directory {
    /// A directory without sockets.
    pub fn new(settings: Settings) -> Directory {
        Directory {
            settings,
            sockets: HashMap::new(),
            rooms: HashMap::new(),
            history: History::new(settings.history_rooms_max),
            registrations: 0,
        }
    }

    /// A socket connected. Of one that is connected already the traits are replaced; `traits.caller` and `traits.recovered` are not used.
    pub fn connect(&mut self, id: SocketId, user: Arc<str>, traits: Traits, now: Time) {
        let socket = self.sockets.entry(id).or_insert_with(|| Socket {
            user,
            traits,
            last_packet: now,
            answer_us: 0,
            unanswered: 0,
            methods: BTreeMap::new(),
        });
        socket.traits = traits;
        socket.last_packet = now;
    }

    /// A socket left, with all its methods. `false` if it was not there.
    pub fn disconnect(&mut self, id: SocketId, cause: Departure, now: Time) -> bool {
        let Some(socket) = self.sockets.remove(&id) else { return false };
        for (method, registration) in socket.methods {
            let room = RpcRoom { user: socket.user.clone(), method };
            self.leave(&room, registration, cause, now);
        }
        true
    }

    /// Registers a method; `Ok(false)` if the socket has it already, whose first registration then stands.
    pub fn register(&mut self, id: SocketId, method: Arc<str>, now: Time) -> Result<bool, RegisterError> {
        self.check_method(&method)?;
        let methods_max = self.settings.methods_per_socket_max;
        let socket = self.sockets.get_mut(&id).ok_or(RegisterError::UnknownSocket)?;
        if socket.methods.contains_key(&method) {
            return Ok(false);
        }
        if socket.methods.len() >= methods_max {
            return Err(RegisterError::TooManyMethods);
        }
        self.registrations += 1;
        let registration = self.registrations;
        socket.methods.insert(method.clone(), registration);
        let room = RpcRoom { user: socket.user.clone(), method };
        let is_first = !self.rooms.contains_key(&room);
        let recovered = is_first && self.history.past(&room, now).cause.is_loss();
        if is_first {
            self.history.returned(&room, now);
        }
        let member = Member { registration, registered: now, socket: id, recovered };
        self.rooms.entry(room).or_default().push(member);
        Ok(true)
    }

    /// Takes a method back; `Ok(false)` if the socket did not have it.
    pub fn unregister(&mut self, id: SocketId, method: &Arc<str>, now: Time) -> Result<bool, RegisterError> {
        self.check_method(method)?;
        let socket = self.sockets.get_mut(&id).ok_or(RegisterError::UnknownSocket)?;
        let Some(registration) = socket.methods.remove(method) else { return Ok(false) };
        let room = RpcRoom { user: socket.user.clone(), method: method.clone() };
        self.leave(&room, registration, Departure::Unregistered, now);
        Ok(true)
    }

    /// A packet of any kind came from the socket.
    pub fn touch(&mut self, id: SocketId, now: Time) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.last_packet = now;
        }
    }

    /// The socket answered a call that took so long.
    pub fn answered(&mut self, id: SocketId, took: Duration, now: Time) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.last_packet = now;
            // 0 says that it has not answered yet.
            socket.answer_us = span_us(took).max(1);
            socket.unanswered = 0;
        }
    }

    /// A call to the socket ran into its deadline.
    pub fn unanswered(&mut self, id: SocketId) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.unanswered = socket.unanswered.saturating_add(1);
        }
    }

    /// Who could get a call from `caller`; `in_flight` says how many calls a socket has in flight.
    pub fn candidates(
        &self,
        room: &RpcRoom,
        caller: SocketId,
        in_flight: impl Fn(SocketId) -> usize,
        now: Time,
    ) -> Candidates {
        let Some(members) = self.rooms.get(room) else { return Candidates::default() };
        let offered = members.len().min(CANDIDATES_MAX);
        let mut candidates = Candidates {
            sockets: Vec::with_capacity(offered),
            inputs: Vec::with_capacity(offered),
            count: members.len(),
        };
        for member in members.iter().take(CANDIDATES_MAX) {
            let Some(socket) = self.sockets.get(&member.socket) else { continue };
            candidates.sockets.push(member.socket);
            candidates.inputs.push(Candidate {
                replica: 0,
                registered_ms: span_ms(now.saturating_since(member.registered)),
                idle_ms: span_ms(now.saturating_since(socket.last_packet)),
                in_flight: u32::try_from(in_flight(member.socket)).unwrap_or(u32::MAX),
                answer_us: socket.answer_us,
                unanswered: socket.unanswered,
                traits: Traits { caller: member.socket == caller, recovered: member.recovered, ..socket.traits },
            });
        }
        candidates
    }

    /// Whether the socket has registered the method.
    pub fn has(&self, room: &RpcRoom, id: SocketId) -> bool {
        self.sockets
            .get(&id)
            .is_some_and(|socket| socket.user == room.user && socket.methods.contains_key(&room.method))
    }

    /// Whether anybody has registered the method.
    pub fn is_served(&self, room: &RpcRoom) -> bool {
        self.rooms.contains_key(room)
    }

    /// Whether somebody has the method who registered it after the directory counted so many registrations.
    pub fn is_served_since(&self, room: &RpcRoom, registrations: u64) -> bool {
        let newest = self.rooms.get(room).and_then(|members| members.last());
        newest.is_some_and(|member| member.registration > registrations)
    }

    /// How many registrations there have been in all.
    pub fn registrations(&self) -> u64 {
        self.registrations
    }

    /// The user of a connected socket.
    pub fn user(&self, id: SocketId) -> Option<&Arc<str>> {
        self.sockets.get(&id).map(|socket| &socket.user)
    }

    /// The traits of a connected socket, as they were given.
    pub fn traits(&self, id: SocketId) -> Option<Traits> {
        self.sockets.get(&id).map(|socket| socket.traits)
    }

    /// The methods of a socket in the order of their names; none if it is not connected.
    pub fn methods(&self, id: SocketId) -> impl Iterator<Item = &Arc<str>> {
        self.sockets.get(&id).into_iter().flat_map(|socket| socket.methods.keys())
    }

    /// What is remembered of the absences of a method.
    pub fn past(&self, room: &RpcRoom, now: Time) -> Past {
        self.history.past(room, now)
    }

    /// Forgets absences that are older than an hour.
    pub fn forget_old(&mut self, now: Time) {
        self.history.forget_old(now);
    }

    /// How many sockets are connected.
    pub fn sockets(&self) -> usize {
        self.sockets.len()
    }

    /// How many methods are registered by somebody.
    pub fn rooms(&self) -> usize {
        self.rooms.len()
    }

    /// How many methods' absences are remembered.
    pub fn remembered(&self) -> usize {
        self.history.rooms()
    }

    /// Whether a method's name is one: not empty, not too long.
    pub fn is_method(&self, method: &str) -> bool {
        !method.is_empty() && method.len() <= self.settings.method_bytes_max
    }

    fn check_method(&self, method: &str) -> Result<(), RegisterError> {
        if self.is_method(method) { Ok(()) } else { Err(RegisterError::InvalidMethod) }
    }

    fn leave(&mut self, room: &RpcRoom, registration: u64, cause: Departure, now: Time) {
        let Some(members) = self.rooms.get_mut(room) else { return };
        // Registrations only grow, so a room is sorted by them.
        if let Ok(at) = members.binary_search_by_key(&registration, |member| member.registration) {
            members.remove(at);
        }
        let emptied = members.is_empty();
        if emptied {
            self.rooms.remove(room);
        }
        self.history.departed(room, cause, emptied, now);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const NOBODY: SocketId = SocketId(0);

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn room(method: &str) -> RpcRoom {
        RpcRoom { user: "u".into(), method: method.into() }
    }

    fn directory_of(sockets: u128) -> Directory {
        let mut directory = Directory::new(Settings::default());
        for id in 1..=sockets {
            directory.connect(SocketId(id), "u".into(), Traits::default(), at(0));
        }
        directory
    }

    fn offered(directory: &Directory, method: &str) -> Vec<SocketId> {
        directory.candidates(&room(method), NOBODY, |_| 0, at(0)).sockets
    }

    #[test]
    fn candidates_come_oldest_registration_first() {
        let mut directory = directory_of(3);
        for id in [2, 3, 1] {
            assert_eq!(directory.register(SocketId(id), "m".into(), at(1)), Ok(true));
        }
        assert_eq!(offered(&directory, "m"), [SocketId(2), SocketId(3), SocketId(1)]);
        directory.unregister(SocketId(2), &"m".into(), at(2)).unwrap();
        directory.register(SocketId(2), "m".into(), at(2)).unwrap();
        assert_eq!(offered(&directory, "m"), [SocketId(3), SocketId(1), SocketId(2)]);
        directory.disconnect(SocketId(1), Departure::Closed, at(3));
        assert_eq!(offered(&directory, "m"), [SocketId(3), SocketId(2)]);
        assert_eq!(offered(&directory, "other"), []);
    }

    #[test]
    fn a_candidate_is_described() {
        let mut directory = Directory::new(Settings::default());
        let traits = Traits { local: true, resumable: true, ..Traits::default() };
        directory.connect(SocketId(1), "u".into(), traits, at(0));
        directory.register(SocketId(1), "m".into(), at(1_000)).unwrap();
        directory.touch(SocketId(1), at(3_000));
        directory.unanswered(SocketId(1));
        let describe = |directory: &Directory, caller, now| {
            directory.candidates(&room("m"), SocketId(caller), |_| 7, at(now)).inputs
        };
        let mut expected = Candidate {
            replica: 0,
            registered_ms: 3_000,
            idle_ms: 1_000,
            in_flight: 7,
            answer_us: 0,
            unanswered: 1,
            traits,
        };
        assert_eq!(describe(&directory, 9, 4_000), [expected]);
        directory.answered(SocketId(1), Duration::ZERO, at(4_000));
        expected = Candidate { idle_ms: 0, answer_us: 1, unanswered: 0, ..expected };
        assert_eq!(describe(&directory, 9, 4_000), [expected]);
        expected.traits.caller = true;
        assert_eq!(describe(&directory, 1, 4_000), [expected]);
    }

    #[test]
    fn no_more_candidates_than_a_policy_takes() {
        let mut directory = directory_of(40);
        for id in 1..=40 {
            directory.register(SocketId(id), "m".into(), at(1)).unwrap();
        }
        let candidates = directory.candidates(&room("m"), NOBODY, |_| 0, at(1));
        assert_eq!((candidates.sockets.len(), candidates.inputs.len(), candidates.count), (32, 32, 40));
        assert_eq!(candidates.sockets.last(), Some(&SocketId(32)));
    }

    #[test]
    fn registering_again_keeps_the_first_registration() {
        let mut directory = directory_of(2);
        for (id, now, is_new) in [(1, 1, true), (2, 2, true), (1, 3, false)] {
            assert_eq!(directory.register(SocketId(id), "m".into(), at(now)), Ok(is_new));
        }
        assert_eq!(offered(&directory, "m"), [SocketId(1), SocketId(2)]);
        let first = directory.candidates(&room("m"), NOBODY, |_| 0, at(4)).inputs[0];
        assert_eq!(first.registered_ms, 3);
    }

    #[test]
    fn what_is_no_method_is_refused() {
        let mut directory = directory_of(1);
        let longest: Arc<str> = "m".repeat(4_096).into();
        let too_long: Arc<str> = "m".repeat(4_097).into();
        assert_eq!(directory.register(SocketId(1), longest.clone(), at(0)), Ok(true));
        assert_eq!(directory.unregister(SocketId(1), &longest, at(0)), Ok(true));
        for invalid in ["".into(), too_long] {
            let refused = Err(RegisterError::InvalidMethod);
            assert_eq!(directory.register(SocketId(1), invalid.clone(), at(0)), refused);
            assert_eq!(directory.unregister(SocketId(1), &invalid, at(0)), refused);
        }
        assert_eq!(RegisterError::InvalidMethod.message(), "Invalid method name");
        assert_eq!(RegisterError::TooManyMethods.message(), "Too many methods");
        assert_eq!(RegisterError::UnknownSocket.message(), "Internal error");
    }

    #[test]
    fn a_socket_has_so_many_methods() {
        let settings = Settings { methods_per_socket_max: 2, ..Settings::default() };
        let mut directory = Directory::new(settings);
        directory.connect(SocketId(1), "u".into(), Traits::default(), at(0));
        assert_eq!(directory.register(SocketId(1), "a".into(), at(0)), Ok(true));
        assert_eq!(directory.register(SocketId(1), "b".into(), at(0)), Ok(true));
        assert_eq!(directory.register(SocketId(1), "c".into(), at(0)), Err(RegisterError::TooManyMethods));
        assert_eq!(directory.register(SocketId(1), "a".into(), at(0)), Ok(false));
        directory.unregister(SocketId(1), &"a".into(), at(0)).unwrap();
        assert_eq!(directory.register(SocketId(1), "c".into(), at(0)), Ok(true));
        let methods: Vec<&str> = directory.methods(SocketId(1)).map(AsRef::as_ref).collect();
        assert_eq!(methods, ["b", "c"]);
    }

    #[test]
    fn a_socket_that_is_not_there_has_nothing() {
        let mut directory = directory_of(0);
        assert_eq!(directory.register(SocketId(1), "m".into(), at(0)), Err(RegisterError::UnknownSocket));
        assert_eq!(directory.unregister(SocketId(1), &"m".into(), at(0)), Err(RegisterError::UnknownSocket));
        assert!(!directory.disconnect(SocketId(1), Departure::Closed, at(0)));
        directory.touch(SocketId(1), at(0));
        directory.answered(SocketId(1), Duration::ZERO, at(0));
        directory.unanswered(SocketId(1));
        assert_eq!((directory.sockets(), directory.rooms(), directory.remembered()), (0, 0, 0));
        assert_eq!((directory.user(SocketId(1)), directory.traits(SocketId(1))), (None, None));
        assert_eq!(directory.methods(SocketId(1)).count(), 0);
    }

    #[test]
    fn users_do_not_meet() {
        let mut directory = directory_of(1);
        directory.connect(SocketId(2), "u:m".into(), Traits::default(), at(0));
        directory.register(SocketId(1), "m:n".into(), at(0)).unwrap();
        directory.register(SocketId(2), "n".into(), at(0)).unwrap();
        assert_eq!(offered(&directory, "m:n"), [SocketId(1)]);
        assert!(directory.has(&room("m:n"), SocketId(1)));
        assert!(!directory.has(&room("n"), SocketId(2)));
    }

    #[test]
    fn departures_are_remembered_by_method() {
        let mut directory = directory_of(2);
        directory.register(SocketId(1), "a".into(), at(0)).unwrap();
        directory.register(SocketId(1), "b".into(), at(0)).unwrap();
        directory.register(SocketId(2), "b".into(), at(0)).unwrap();
        let before = directory.registrations();
        directory.disconnect(SocketId(1), Departure::TransportLost, at(1_000));
        assert!(!directory.is_served(&room("a")) && directory.is_served(&room("b")));
        assert!(!directory.is_served_since(&room("b"), before));
        directory.connect(SocketId(3), "u".into(), Traits::default(), at(1_500));
        directory.register(SocketId(3), "a".into(), at(1_500)).unwrap();
        directory.register(SocketId(3), "b".into(), at(1_500)).unwrap();
        assert!(directory.is_served_since(&room("a"), before) && directory.is_served_since(&room("b"), before));
        let past = |method| directory.past(&room(method), at(2_000));
        assert_eq!((past("a").cause, past("a").gone_ms), (Departure::TransportLost, 1_000));
        // Of `b` there was always one.
        assert_eq!((past("a").returns_ms, past("b").returns_ms), (vec![500], vec![]));
        assert_eq!((past("a").departures, past("b").departures), (1, 1));
    }

    #[test]
    fn one_more_daemon_does_not_prolong_the_memory_of_a_departure() {
        let mut directory = directory_of(3);
        directory.register(SocketId(1), "m".into(), at(0)).unwrap();
        directory.register(SocketId(2), "m".into(), at(0)).unwrap();
        directory.unregister(SocketId(1), &"m".into(), at(0)).unwrap();
        directory.register(SocketId(3), "m".into(), at(1_800_000)).unwrap();
        assert_eq!(directory.past(&room("m"), at(3_599_999)).cause, Departure::Unregistered);
        assert_eq!(directory.past(&room("m"), at(3_600_000)).cause, Departure::NeverSeen);
    }
}
