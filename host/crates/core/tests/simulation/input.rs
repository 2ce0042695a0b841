//! The inputs of a call machine as data: the machine, the model and the auditor get the same.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pointwork_core::decisions::{Choice, Departure, Traits, Verdict};
use pointwork_core::{AskId, CallId, CallMachine, CallRefused, RegisterError, SocketId, Time};

#[derive(Debug, Clone)]
pub(crate) enum Input {
    Connect(SocketId, Arc<str>, u32, Traits),
    Packet(SocketId),
    Register(SocketId, Arc<str>),
    /// Told by another replica, with the registration's age.
    Registered(SocketId, Arc<str>, Duration),
    Unregister(SocketId, Arc<str>),
    Disconnect(SocketId, Departure),
    Forget(SocketId),
    Link(bool),
    Call(SocketId, Arc<str>, u32, Duration),
    Choice(CallId, AskId, Choice),
    Wait(CallId, AskId, u32),
    Judgement(CallId, AskId, Verdict),
    Result(CallId, u64),
    HandedIn(Arc<str>, CallId, u64),
    Resumed(Arc<str>, SocketId, SocketId, BTreeSet<CallId>),
    Unanswerable(CallId),
    Undelivered(CallId),
    Unreachable(CallId),
    Timeout,
}

/// What a handler returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Returned {
    Nothing,
    Registered(Result<(), RegisterError>),
    Called(Result<CallId, CallRefused>),
    Forgotten(bool),
    HandedIn(bool),
}

impl Input {
    pub(crate) fn give(&self, machine: &mut CallMachine<u64>, now: Time) -> Returned {
        match self.clone() {
            Input::Connect(socket, user, replica, traits) => machine.handle_connect(socket, user, replica, traits, now),
            Input::Packet(socket) => machine.handle_packet(socket, now),
            Input::Register(socket, method) => {
                return Returned::Registered(machine.handle_register(socket, method, now));
            }
            Input::Registered(socket, method, age) => {
                return Returned::Registered(machine.handle_registered(socket, method, age, now));
            }
            Input::Unregister(socket, method) => {
                return Returned::Registered(machine.handle_unregister(socket, &method, now));
            }
            Input::Disconnect(socket, cause) => machine.handle_disconnect(socket, cause, now),
            Input::Forget(socket) => return Returned::Forgotten(machine.handle_forget(socket, now)),
            Input::Link(is_up) => machine.handle_link(is_up, now),
            Input::Call(caller, method, bytes, timeout) => {
                return Returned::Called(machine.handle_call(caller, method, bytes, timeout, now));
            }
            Input::Choice(call, ask, choice) => machine.handle_choice(call, ask, choice, now),
            Input::Wait(call, ask, wait_ms) => machine.handle_wait(call, ask, wait_ms, now),
            Input::Judgement(call, ask, verdict) => machine.handle_judgement(call, ask, verdict, now),
            Input::Result(call, result) => machine.handle_result(call, result, now),
            Input::HandedIn(user, call, result) => {
                return Returned::HandedIn(machine.handle_handed_in(&user, call, result, now));
            }
            Input::Resumed(user, old, new, has) => machine.handle_resumed(&user, old, new, &has, now),
            Input::Undelivered(call) => machine.handle_undelivered(call, now),
            Input::Unanswerable(call) => machine.handle_unanswerable(call, now),
            Input::Unreachable(call) => machine.handle_unreachable(call, now),
            Input::Timeout => machine.handle_timeout(now),
        }
        Returned::Nothing
    }
}
