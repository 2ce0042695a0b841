//! What can happen to a switchboard, as data: the same input is given to the machine, to the model and to the auditor.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pointwork_core::decision::{Choice, Departure, Traits, Verdict};
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
    pub(crate) fn give(&self, board: &mut CallMachine<u64>, now: Time) -> Returned {
        match self.clone() {
            Input::Connect(socket, user, replica, traits) => board.handle_connect(socket, user, replica, traits, now),
            Input::Packet(socket) => board.handle_packet(socket, now),
            Input::Register(socket, method) => {
                return Returned::Registered(board.handle_register(socket, method, now));
            }
            Input::Registered(socket, method, age) => {
                return Returned::Registered(board.handle_registered(socket, method, age, now));
            }
            Input::Unregister(socket, method) => {
                return Returned::Registered(board.handle_unregister(socket, &method, now));
            }
            Input::Disconnect(socket, cause) => board.handle_disconnect(socket, cause, now),
            Input::Forget(socket) => return Returned::Forgotten(board.handle_forget(socket, now)),
            Input::Link(is_up) => board.handle_link(is_up, now),
            Input::Call(caller, method, bytes, timeout) => {
                return Returned::Called(board.handle_call(caller, method, bytes, timeout, now));
            }
            Input::Choice(call, ask, choice) => board.handle_choice(call, ask, choice, now),
            Input::Wait(call, ask, wait_ms) => board.handle_wait(call, ask, wait_ms, now),
            Input::Judgement(call, ask, verdict) => board.handle_judgement(call, ask, verdict, now),
            Input::Result(call, result) => board.handle_result(call, result, now),
            Input::HandedIn(user, call, result) => {
                return Returned::HandedIn(board.handle_handed_in(&user, call, result, now));
            }
            Input::Resumed(user, old, new, has) => board.handle_resumed(&user, old, new, &has, now),
            Input::Undelivered(call) => board.handle_undelivered(call, now),
            Input::Unanswerable(call) => board.handle_unanswerable(call, now),
            Input::Unreachable(call) => board.handle_unreachable(call, now),
            Input::Timeout => board.handle_timeout(now),
        }
        Returned::Nothing
    }
}
