//! Handles the events of sockets (they connect, register, leave, come back) and of the link to the other replicas.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::CallMachine;
use crate::calls::answer::RegisterError;
use crate::calls::command::CallCommand;
use crate::calls::directory::Reach;
use crate::calls::open_call::{CallStage, FlightState};
use crate::decisions::{Departure, Traits};
use crate::ids::{CallId, SocketId};
use crate::room::RpcRoom;
use crate::time::Time;

impl<R> CallMachine<R> {
    /// A socket connected to `replica`: 0 for this one, else the small number of another. `traits.caller` and
    /// `traits.recovered` are not used: they are the machine's to say. Of a socket that is connected already only
    /// replica and traits change, unless it comes as another user: then the old one has left first.
    pub fn handle_connect(&mut self, socket: SocketId, user: Arc<str>, replica: u32, traits: Traits, now: Time) {
        let now = self.advance(now);
        if self.directory.user(socket).is_some_and(|known| *known != user) {
            self.handle_disconnect(socket, Departure::Closed, now);
        }
        self.directory.connect(socket, user, replica, traits, now);
    }

    /// A packet of any kind came from a socket, engine pings included. Registering and calling count by themselves.
    pub fn handle_packet(&mut self, socket: SocketId, now: Time) {
        let now = self.advance(now);
        self.directory.touch(socket, now);
    }

    /// A socket registers a method. Calls that wait for it go on, oldest first. A second time changes nothing.
    pub fn handle_register(&mut self, socket: SocketId, method: Arc<str>, now: Time) -> Result<(), RegisterError> {
        let now = self.advance(now);
        self.directory.touch(socket, now);
        self.join(socket, method, Duration::ZERO, now)
    }

    /// Another replica tells that a socket of its registered a method `age` ago. Like
    /// [`CallMachine::handle_register`], except that it is no sign of life from the socket.
    pub fn handle_registered(
        &mut self,
        socket: SocketId,
        method: Arc<str>,
        age: Duration,
        now: Time,
    ) -> Result<(), RegisterError> {
        let now = self.advance(now);
        self.join(socket, method, age, now)
    }

    /// A socket takes a method back. Its calls in flight by that method are in doubt. Nothing happens if it did not
    /// have it.
    pub fn handle_unregister(&mut self, socket: SocketId, method: &Arc<str>, now: Time) -> Result<(), RegisterError> {
        let now = self.advance(now);
        self.directory.touch(socket, now);
        if self.directory.unregister(socket, method, now)?
            && let Some(user) = self.directory.user(socket)
        {
            let room = RpcRoom { user: user.clone(), method: method.clone() };
            for id in self.by_target.of(&socket) {
                if self.calls.get(&id).is_some_and(|call| call.room == room) {
                    self.doubt(id, Departure::Unregistered);
                }
            }
        }
        Ok(())
    }

    /// A socket left, or its replica is not heard from. The calls it made are forgotten, the calls in flight to it are
    /// in doubt.
    ///
    /// Of a socket that is not there (any more) this is news for the calls in doubt: if they were so for want of news
    /// from its replica, they are now so by `cause`, and `presence` is asked again at once.
    pub fn handle_disconnect(&mut self, socket: SocketId, cause: Departure, now: Time) {
        let now = self.advance(now);
        self.drop_socket(socket, cause, now);
        // Of one that took its last method back nothing new is known: whoever called by that method has heard, and what it resumed it
        // may have done so by another.
        if cause != Departure::Unregistered {
            for call in self.by_target.of(&socket) {
                self.doubt(call, cause);
            }
        }
    }

    /// A daemon that is back on the socket `new` says which requests of its socket `old` it has: it goes on with those, and will
    /// hand their results in. The others of that socket it never got, or has forgotten; nobody waits for them. The old socket is
    /// gone, whoever is to tell that may not know it yet: nothing more is sent to it. Calls and sockets of other users are not
    /// touched, nor calls that it cannot hand in.
    pub fn handle_resumed(&mut self, user: &str, old: SocketId, new: SocketId, has: &BTreeSet<CallId>, now: Time) {
        let now = self.advance(now);
        let is_gone = old != new && self.directory.user(old).is_some_and(|known| **known == *user);
        if is_gone {
            self.drop_socket(old, Departure::TransportLost, now);
        }
        for id in self.by_target.of(&old) {
            let Some(call) = self.calls.get_mut(&id).filter(|call| *call.room.user == *user) else { continue };
            let CallStage::InFlight(flight) = &mut call.stage else { continue };
            if !flight.resumable {
                continue;
            }
            if has.contains(&id) {
                (flight.target, flight.is_resumed, flight.state) = (new, true, FlightState::Confident);
                let deadline = call.deadline;
                self.by_target.remove(&old, id);
                self.by_target.insert(&new, id);
                self.wake_at(id, deadline);
                self.go_on(id);
            } else {
                flight.is_resumed = false;
                self.handle_undelivered(id, now);
                self.doubt(id, Departure::TransportLost);
            }
        }
        if is_gone {
            for id in self.by_target.of(&old) {
                self.doubt(id, Departure::TransportLost);
            }
        }
    }

    /// A socket that was found by a lookup is offered no longer, for nobody tells when it leaves: no absence begins, nobody
    /// is doubted, and calls in flight to it go on. Not done, and `false`, if it is not there or has calls of its own.
    pub fn handle_forget(&mut self, socket: SocketId, now: Time) -> bool {
        self.advance(now);
        if self.by_caller.count(&socket) > 0 {
            return false;
        }
        self.directory.forget(socket)
    }

    /// Whether other replicas can be reached at all; they can until this says otherwise. While they cannot, their
    /// sockets are not offered, and a call that only they could take is `Unreachable` at once. Calls that wait or are
    /// in flight are not touched.
    pub fn handle_link(&mut self, is_up: bool, now: Time) {
        self.advance(now);
        self.reach = if is_up { Reach::All } else { Reach::Local };
    }

    /// Whether a replica (0: this one) shuts down in order. Its sockets get no more calls: a call that finds no others waits, for
    /// the daemon will be back elsewhere. Calls in flight to them go on.
    pub fn handle_draining(&mut self, replica: u32, is_draining: bool, now: Time) {
        self.advance(now);
        self.directory.drain(replica, is_draining);
    }

    /// A socket is offered no longer, and the calls it made are forgotten.
    fn drop_socket(&mut self, socket: SocketId, cause: Departure, now: Time) {
        self.directory.disconnect(socket, cause, now);
        for call in self.by_caller.of(&socket) {
            if self.end(call).is_some() {
                self.commands.push_back(CallCommand::Forget { call });
            }
        }
    }

    fn join(&mut self, socket: SocketId, method: Arc<str>, age: Duration, now: Time) -> Result<(), RegisterError> {
        if self.directory.register(socket, method.clone(), age, now)?
            && let Some(user) = self.directory.user(socket)
        {
            let room = RpcRoom { user: user.clone(), method };
            self.restore_confidence(socket, &room);
            for call in self.waiting.take(&room) {
                self.resolve(call);
            }
        }
        Ok(())
    }

    /// A socket that had taken a method back, or whose replica had been silent, has the method: what was in doubt by
    /// that alone no longer is.
    fn restore_confidence(&mut self, socket: SocketId, room: &RpcRoom) {
        for id in self.by_target.of(&socket) {
            let Some(call) = self.calls.get_mut(&id).filter(|call| call.room == *room) else { continue };
            if let CallStage::InFlight(flight) = &mut call.stage
                && let FlightState::Doubtful(doubt) = &flight.state
                && !doubt.cause.is_proof()
            {
                flight.state = FlightState::Confident;
                let deadline = call.deadline;
                self.wake_at(id, deadline);
                self.go_on(id);
            }
        }
    }
}
