//! Knows which sockets are connected, which methods they registered, and what a policy is told of each candidate.
//!
//! One entry per socket holds all its methods, so that a socket is either there with all of them or gone with all.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::answer::RegisterError;
use super::history::{History, Past};
use super::settings::CallSettings;
use crate::decisions::{CANDIDATES_MAX, Candidate, Departure, Traits};
use crate::ids::SocketId;
use crate::room::RpcRoom;
use crate::time::{Origin, SPAN_UNKNOWN, Time, span_ms, span_us};

/// The sockets of a shard of users and their methods.
#[derive(Debug)]
pub struct Directory {
    settings: CallSettings,
    sockets: HashMap<SocketId, ConnectedSocket>,
    /// Never holds an empty room.
    rooms: HashMap<RpcRoom, Vec<Member>>,
    history: History,
    /// Counts registrations as they became known.
    registrations: u64,
    /// The replicas that shut down in order.
    draining: BTreeSet<u32>,
}

#[derive(Debug)]
struct ConnectedSocket {
    user: Arc<str>,
    /// The replica that holds it; 0 is this one.
    replica: u32,
    traits: Traits,
    last_packet: Time,
    answer_us: u32,
    unanswered: u32,
    /// Each method with its place in the room. In order, because a disconnect walks over it.
    methods: BTreeMap<Arc<str>, Rank>,
}

#[derive(Debug)]
struct Member {
    rank: Rank,
    socket: SocketId,
    /// It came back after a loss.
    recovered: bool,
}

/// Orders the members of a room by the moment of their registration, then by which became known first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    since: Origin,
    /// Its number among all registrations, as they became known.
    registration: u64,
}

/// Which replicas' sockets can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Those of all replicas.
    All,
    /// Those of this replica alone: the link to the others is down.
    Local,
}

/// The candidates for one call.
#[derive(Debug, Default)]
pub struct Candidates {
    /// Their sockets, in the same order as `inputs`.
    pub sockets: Vec<SocketId>,
    /// What a policy is told of them, oldest registration first; at most [`CANDIDATES_MAX`].
    pub inputs: Vec<Candidate>,
    /// How many sockets have the method, those beyond [`CANDIDATES_MAX`] and those out of reach included.
    pub count: usize,
}

impl Directory {
    /// A directory without sockets.
    pub fn new(settings: CallSettings) -> Directory {
        Directory {
            settings,
            sockets: HashMap::new(),
            rooms: HashMap::new(),
            history: History::new(settings.history_rooms_max),
            registrations: 0,
            draining: BTreeSet::new(),
        }
    }

    /// A socket connected to a replica, 0 being this one. Of one that is connected already replica and traits are
    /// replaced; `traits.caller` and `traits.recovered` are not used.
    pub fn connect(&mut self, id: SocketId, user: Arc<str>, replica: u32, traits: Traits, now: Time) {
        let socket = self.sockets.entry(id).or_insert_with(|| ConnectedSocket {
            user,
            replica,
            traits,
            last_packet: now,
            answer_us: 0,
            unanswered: 0,
            methods: BTreeMap::new(),
        });
        socket.replica = replica;
        socket.traits = traits;
        socket.last_packet = now;
    }

    /// A socket left, with all its methods. `false` if it was not there.
    pub fn disconnect(&mut self, id: SocketId, cause: Departure, now: Time) -> bool {
        let Some(socket) = self.sockets.remove(&id) else { return false };
        for (method, rank) in socket.methods {
            let room = RpcRoom { user: socket.user.clone(), method };
            let emptied = self.remove_member(&room, rank);
            self.history.departed(&room, cause, emptied, now);
        }
        true
    }

    /// How long ago the last packet of a socket came; `None` if it is not there.
    pub fn idle(&self, id: SocketId, now: Time) -> Option<Duration> {
        self.sockets.get(&id).map(|socket| now.saturating_since(socket.last_packet))
    }

    /// Drops a socket with all its methods as if it had never been there: no absence begins. `false` if it was not
    /// there.
    pub fn forget(&mut self, id: SocketId) -> bool {
        let Some(socket) = self.sockets.remove(&id) else { return false };
        for (method, rank) in socket.methods {
            self.remove_member(&RpcRoom { user: socket.user.clone(), method }, rank);
        }
        true
    }

    /// Registers a method that the socket has had for `age`; `Ok(false)` if that is known already, and the first
    /// registration then stands.
    pub fn register(
        &mut self,
        id: SocketId,
        method: Arc<str>,
        age: Duration,
        now: Time,
    ) -> Result<bool, RegisterError> {
        self.check_method(&method)?;
        let (methods_max, bytes_max) =
            (self.settings.methods_per_socket_max, self.settings.method_bytes_per_socket_max);
        let socket = self.sockets.get_mut(&id).ok_or(RegisterError::UnknownSocket)?;
        if socket.methods.contains_key(&method) {
            return Ok(false);
        }
        let bytes: usize = socket.methods.keys().map(|method| method.len()).sum();
        if socket.methods.len() >= methods_max || bytes + method.len() > bytes_max {
            return Err(RegisterError::TooManyMethods);
        }
        self.registrations += 1;
        let rank = Rank { since: Origin::before(now, age), registration: self.registrations };
        socket.methods.insert(method.clone(), rank);
        let room = RpcRoom { user: socket.user.clone(), method };
        let recovered =
            !self.rooms.contains_key(&room) && self.history.returned(&room, now).is_some_and(|cause| cause.is_loss());
        let members = self.rooms.entry(room).or_default();
        let at = members.partition_point(|member| member.rank < rank);
        members.insert(at, Member { rank, socket: id, recovered });
        Ok(true)
    }

    /// Takes a method back; `Ok(false)` if the socket did not have it.
    pub fn unregister(&mut self, id: SocketId, method: &Arc<str>, now: Time) -> Result<bool, RegisterError> {
        self.check_method(method)?;
        let socket = self.sockets.get_mut(&id).ok_or(RegisterError::UnknownSocket)?;
        let Some(rank) = socket.methods.remove(method) else { return Ok(false) };
        let room = RpcRoom { user: socket.user.clone(), method: method.clone() };
        let emptied = self.remove_member(&room, rank);
        self.history.departed(&room, Departure::Unregistered, emptied, now);
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

    /// Who within reach could get a call from `caller`; `in_flight` says how many calls a socket has in flight.
    pub fn candidates(
        &self,
        room: &RpcRoom,
        caller: SocketId,
        reach: Reach,
        in_flight: impl Fn(SocketId) -> usize,
        now: Time,
    ) -> Candidates {
        let members = self.rooms.get(room).map(Vec::as_slice).unwrap_or_default();
        let known = members.iter().filter_map(|member| Some((member, self.sockets.get(&member.socket)?)));
        let known = known.filter(|(_, socket)| !self.draining.contains(&socket.replica));
        let mut candidates = Candidates { count: known.clone().count(), ..Candidates::default() };
        for (member, socket) in known.filter(|(_, socket)| socket.is_within(reach)).take(CANDIDATES_MAX) {
            candidates.sockets.push(member.socket);
            let in_flight = in_flight(member.socket);
            candidates.inputs.push(socket.candidate(member, member.socket == caller, in_flight, now));
        }
        candidates
    }

    /// Whether a replica shuts down in order. The sockets of one that does are offered to no call.
    pub fn drain(&mut self, replica: u32, is_draining: bool) {
        if is_draining {
            self.draining.insert(replica);
        } else {
            self.draining.remove(&replica);
        }
    }

    /// Whether the socket is connected and within reach.
    pub fn reaches(&self, id: SocketId, reach: Reach) -> bool {
        self.sockets.get(&id).is_some_and(|socket| socket.is_within(reach))
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

    /// Whether somebody has the method whose registration became known after the directory counted so many, however
    /// old it was by then.
    pub fn is_served_since(&self, room: &RpcRoom, registrations: u64) -> bool {
        let members = self.rooms.get(room).map(Vec::as_slice).unwrap_or_default();
        members.iter().any(|member| member.rank.registration > registrations)
    }

    /// How many registrations have become known in all.
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

    /// How many sockets are connected, to whichever replica.
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

    /// Whether nobody is left in the room.
    fn remove_member(&mut self, room: &RpcRoom, rank: Rank) -> bool {
        let Some(members) = self.rooms.get_mut(room) else { return true };
        // A room is sorted by rank, and no two ranks are the same.
        if let Ok(at) = members.binary_search_by_key(&rank, |member| member.rank) {
            members.remove(at);
        }
        let emptied = members.is_empty();
        if emptied {
            self.rooms.remove(room);
        }
        emptied
    }
}

impl ConnectedSocket {
    fn is_within(&self, reach: Reach) -> bool {
        reach == Reach::All || self.replica == 0
    }

    /// What a policy is told of it. Of what a foreign replica holds, spans are unknown and counts are 0.
    fn candidate(&self, member: &Member, is_caller: bool, in_flight: usize, now: Time) -> Candidate {
        let traits = Traits { caller: is_caller, recovered: member.recovered, ..self.traits };
        if traits.foreign {
            return Candidate {
                replica: self.replica,
                registered_ms: SPAN_UNKNOWN,
                idle_ms: SPAN_UNKNOWN,
                in_flight: 0,
                answer_us: 0,
                unanswered: 0,
                traits,
            };
        }
        Candidate {
            replica: self.replica,
            registered_ms: span_ms(member.rank.since.age(now)),
            idle_ms: span_ms(now.saturating_since(self.last_packet)),
            in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX),
            answer_us: self.answer_us,
            unanswered: self.unanswered,
            traits,
        }
    }
}
