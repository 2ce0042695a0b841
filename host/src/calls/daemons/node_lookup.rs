//! Daemons on servers of another kind (Node's), which announce nothing: they are asked when nobody is known.
//!
//! The rule is that of the seed, with its cadences: look once, ask `grace`, look again every `rpc.reconnect_poll_ms` while a call
//! waits; look every `rpc.presence_poll_ms` after a daemon that a call is in flight to. A server that does not answer proves
//! nothing; only its own word, or its process being gone, does.

use std::{sync::Arc, time::Duration};

use pointwork_core::{
    RpcRoom, SocketId,
    decisions::{Departure, Traits},
    room,
};
use socketioxide_redis_streams::wire::Options;
use tokio::time::sleep;

use crate::calls::{
    action::GraceQuestion,
    call::location::{RemoteSocket, SocketLocation},
    state::Calls,
};

/// How many looks are under way at once: each is a question to every server.
pub(in crate::calls) const LOOKS_MAX: usize = 32;

/// Replica numbers from here up are those of foreign servers.
const FOREIGN_REPLICA_MIN: u64 = 1_000;

impl Calls {
    /// Looks for a daemon before `grace` is asked. Calls for one method share their looks.
    pub(in crate::calls) fn look_up(self: &Arc<Self>, index: usize, room: RpcRoom, question: GraceQuestion) {
        let mut lookups = self.lookups.lock();
        if let Some(questions) = lookups.get_mut(&room) {
            questions.push(question);
            return;
        }
        lookups.insert(room.clone(), vec![question]);
        drop(lookups);
        let calls = self.clone();
        tokio::spawn(async move {
            for retries in 0.. {
                calls.look(index, &room).await;
                calls.ask_grace(index, &room);
                if calls.is_found_or_given_up(index, &room) {
                    calls.methods.looks.record(retries);
                    return;
                }
                sleep(calls.lookup.while_waiting).await;
            }
        });
    }

    /// Asks all other servers, and enters what they have.
    async fn look(self: &Arc<Self>, index: usize, room: &RpcRoom) {
        let Ok(_turn) = self.looking.acquire().await else { return };
        let opts = Options::room(room::rpc(&room.user, &room.method));
        let answers = match self.namespace.fetch_sockets(opts, Some(self.lookup.timeout)).await {
            Ok(answers) => answers,
            Err(error) => return tracing::debug!(%error, "other servers could not be asked for a daemon"),
        };
        if answers.missing > 0 {
            count_timeouts("lookup", answers.missing);
        }
        for (owner, sockets) in answers.given {
            for socket in sockets {
                if let Some(id) = foreign_id(&socket.id) {
                    let location = RemoteSocket { owner: owner.as_str().into(), id: socket.id.into() };
                    self.enter(index, room, id, location);
                }
            }
        }
    }

    /// A foreign daemon has the method: calls that wait for it are sent, and no others, for nobody tells when it leaves. Later calls
    /// look again.
    fn enter(self: &Arc<Self>, index: usize, room: &RpcRoom, socket: SocketId, location: RemoteSocket) {
        let replica = u64::from_str_radix(&location.owner, 16).unwrap_or(0) % 1_000_000 + FOREIGN_REPLICA_MIN;
        let replica = u32::try_from(replica).unwrap_or(u32::MAX);
        self.methods.registered(&room.method, || pointwork_policy::user_key(&room.user));
        let traits = Traits { foreign: true, ..Traits::default() };
        let was_watched = self.drive_shard(index, |state, now| {
            let was_watched = state.sockets.insert(socket, SocketLocation::There(location.clone())).is_some();
            state.machine.handle_connect(socket, room.user.clone(), replica, traits, now);
            // A method that is too long was never asked for.
            let _ = state.machine.handle_registered(socket, room.method.clone(), Duration::ZERO, now);
            was_watched
        });
        let is_called = self.drive_shard(index, |state, now| {
            state.machine.handle_forget(socket, now);
            let is_called = state.machine.in_flight(socket) > 0;
            if !is_called && !was_watched {
                state.sockets.remove(&socket);
            }
            is_called
        });
        if is_called && !was_watched {
            tokio::spawn(self.clone().watch(index, socket, location));
        }
    }

    /// Asks `grace` about the calls that nobody was found for.
    fn ask_grace(self: &Arc<Self>, index: usize, room: &RpcRoom) {
        let questions = self.lookups.lock().get_mut(room).map(std::mem::take).unwrap_or_default();
        for GraceQuestion { call, ask, key, input, absence } in questions {
            let is_open = self.drive_shard(index, |state, _| state.machine.is_waiting(room));
            if is_open {
                let wait_ms = self.policies.wait(key, &input, &absence);
                self.drive_shard(index, |state, now| state.machine.handle_wait(call, ask, wait_ms, now));
            }
        }
    }

    /// Ends the looking for a method that no call waits for.
    fn is_found_or_given_up(self: &Arc<Self>, index: usize, room: &RpcRoom) -> bool {
        let mut lookups = self.lookups.lock();
        let is_asked = lookups.get(room).is_some_and(|questions| !questions.is_empty());
        if is_asked || self.shards[index].peek(|state| state.machine.is_waiting(room)) {
            return false;
        }
        lookups.remove(room);
        true
    }

    /// Looks after a foreign daemon for as long as a call is in flight to it.
    async fn watch(self: Arc<Self>, index: usize, socket: SocketId, location: RemoteSocket) {
        // A socket's own id is a room.
        let opts = Options::room(&*location.id);
        loop {
            sleep(self.lookup.while_in_flight).await;
            let is_done = self.drive_shard(index, |state, _| {
                // While it is known, calls are being sent to it.
                let is_known = state.machine.directory().user(socket).is_some();
                let is_done = !is_known && state.machine.in_flight(socket) == 0;
                if is_done {
                    state.sockets.remove(&socket);
                }
                is_done
            });
            if is_done {
                return;
            }
            let answer =
                self.namespace.fetch_sockets_of(&location.owner, opts.clone(), Some(self.lookup.timeout)).await;
            if matches!(answer, Ok(None)) {
                count_timeouts("presence", 1);
            }
            let gone = match answer {
                Ok(Some(sockets)) if sockets.iter().any(|found| *found.id == *location.id) => None,
                Ok(Some(_)) => Some(Departure::TransportLost),
                Ok(None) if self.namespace.is_served_by(&location.owner).await.is_ok_and(|served| !served) => {
                    Some(Departure::ReplicaLost)
                }
                Ok(None) | Err(_) => None,
            };
            if let Some(cause) = gone {
                self.drive_shard(index, |state, now| {
                    state.sockets.remove(&socket);
                    state.machine.handle_disconnect(socket, cause, now);
                });
                return;
            }
        }
    }
}

/// Servers that did not answer a look in time, by what they were asked for.
fn count_timeouts(context: &'static str, servers: u64) {
    metrics::counter!("rpc_fetchsockets_timeouts_total", "context" => context).increment(servers);
}

/// The id of a Node socket, 20 characters of base64, as the machine knows it. No other socket has such a number: the ids of this
/// host's own are text.
fn foreign_id(text: &str) -> Option<SocketId> {
    if text.len() != 20 {
        return None;
    }
    let sextet = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'-' | b'+' => Some(62),
        b'_' | b'/' => Some(63),
        _ => None,
    };
    let packed = text.bytes().try_fold(0u128, |packed, byte| Some(packed << 6 | u128::from(sextet(byte)?)))?;
    Some(SocketId(0xff << 120 | packed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_ids_are_no_ids_of_this_host() {
        let one = foreign_id("Zb3kYtA9qX0Lm-_2AAAB");
        assert!(one.is_some_and(|id| id.0 >> 120 == 0xff));
        assert_ne!(one, foreign_id("Zb3kYtA9qX0Lm-_2AAAC"));
        for none in ["", "Zb3kYtA9qX0Lm-_2", "Zb3kYtA9qX0Lm-_2AAA!", "Zb3kYtA9qX0Lm-_2AAABB"] {
            assert_eq!(foreign_id(none), None, "{none}");
        }
    }
}
