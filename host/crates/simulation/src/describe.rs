//! Events and messages as a story tells them.

use std::fmt;

use pointwork_core::{Change, Numbered, Part};

use crate::event::{CallRef, Down, Given, Message, Request, Resumed, Up};
use crate::room::{METHOD_NAMES, Room, USER_NAMES};

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", USER_NAMES[self.user()], METHOD_NAMES[self.method()])
    }
}

impl fmt::Display for CallRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {} of r{}", self.call.0, self.process)
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Given::Value(value) => write!(f, "{value}"),
            Given::Unusable => write!(f, "something unusable"),
        }
    }
}

impl fmt::Display for Up {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Up::Hello => write!(f, "connects"),
            Up::Resumed(resumed) => write!(f, "{}", Shown(&**resumed)),
            Up::Register(room) => write!(f, "registers {room}"),
            Up::Unregister(room) => write!(f, "takes {room} back"),
            Up::Call { token, room, timeout_ms } => write!(f, "calls {room} with {timeout_ms} ms: #{token}"),
            Up::Ack { token, given } => write!(f, "acknowledges #{token} by {given}"),
            Up::HandIn { call, value } => write!(f, "hands {value} in for {call}"),
            Up::Close => write!(f, "closes"),
        }
    }
}

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Down::Request { token, call: Some(call) } => write!(f, "is requested to do #{token}, {call}"),
            Down::Request { token, call: None } => write!(f, "is requested to do #{token}"),
            Down::Answer { token } => write!(f, "is told the end of #{token}"),
            Down::HandedIn { call, outcome } => write!(f, "is told what became of {call}: {outcome:?}"),
            Down::Closed => write!(f, "is told that the process closes"),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Beat { seq, hello, .. } => write!(f, "a heartbeat, at change {seq}, hello {hello}"),
            Message::Away => write!(f, "it lives, but hears nothing"),
            Message::Farewell => write!(f, "farewell"),
            Message::Change(numbered) => write!(f, "change {}", Shown(&**numbered)),
            Message::AskSnapshot => write!(f, "what do your sockets have?"),
            Message::Part(part) => write!(f, "snapshot {}", Shown(&**part)),
            Message::Leaving => write!(f, "it shuts down"),
            Message::Noted => write!(f, "noted"),
            Message::Request(request) => {
                let Request { request, target, token, .. } = &**request;
                write!(f, "request {request}: #{token} for socket {}", target.0)
            }
            Message::Reply { request, given } => write!(f, "reply to request {request}: {given}"),
            Message::Absent { request } => write!(f, "request {request}: the socket is not there"),
            Message::Unanswered { request } => write!(f, "request {request}: there will be no answer"),
            Message::Recall(requests) => write!(f, "which of {requests:?} are not being served?"),
            Message::Unserved(requests) => write!(f, "not being served: {requests:?}"),
            Message::Resumed(resumed) => write!(f, "{}", Shown(&**resumed)),
            Message::HandIn { request, call, value, .. } => {
                write!(f, "request {request}: {value} is handed in for call {}", call.0)
            }
            Message::HandedIn { request, taken } => write!(f, "request {request}: taken {taken}"),
        }
    }
}

/// Something of the machines', shorter than they show it.
struct Shown<'a, T>(&'a T);

impl fmt::Display for Shown<'_, Numbered> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.0.seq)?;
        match &self.0.change {
            Change::Joined { socket, user, method, .. } => write!(f, "socket {} has {user}:{method}", socket.0),
            Change::Left { socket, method } => write!(f, "socket {} took {method} back", socket.0),
            Change::Gone { socket, cause } => write!(f, "socket {} is gone: {cause:?}", socket.0),
        }
    }
}

impl fmt::Display for Shown<'_, Resumed> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Resumed { old, new, has, .. } = self.0;
        write!(f, "socket {} is now socket {}, and has", old + 1, new + 1)?;
        has.iter().try_for_each(|call| write!(f, " {call},"))
    }
}

impl fmt::Display for Shown<'_, Part> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part { seq, index, last, sockets } = self.0;
        write!(f, "{seq}, part {index}{}:", if *last { ", the last" } else { "" })?;
        for announced in sockets {
            write!(f, " socket {} ({})", announced.socket.0, announced.methods.len())?;
        }
        Ok(())
    }
}
