//! Formats packets and messages for traces.

use std::fmt;

use pointwork_core::{NumberedChange, SnapshotPart, SocketChange};

use crate::calls::events::{CallRef, ClientPacket, DaemonResult, PeerMessage, PeerRequest, Resumed, ServerPacket};
use crate::calls::rooms::{METHOD_NAMES, Room, USER_NAMES};

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

impl fmt::Display for DaemonResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DaemonResult::Value(value) => write!(f, "{value}"),
            DaemonResult::Unusable => write!(f, "something unusable"),
        }
    }
}

impl fmt::Display for ClientPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientPacket::Hello => write!(f, "connects"),
            ClientPacket::Resumed(resumed) => write!(f, "{resumed}"),
            ClientPacket::Register(room) => write!(f, "registers {room}"),
            ClientPacket::Unregister(room) => write!(f, "takes {room} back"),
            ClientPacket::Call { token, room, timeout_ms } => write!(f, "calls {room} with {timeout_ms} ms: #{token}"),
            ClientPacket::Ack { token, given } => write!(f, "acknowledges #{token} by {given}"),
            ClientPacket::HandIn { call, value } => write!(f, "hands {value} in for {call}"),
            ClientPacket::Close => write!(f, "closes"),
        }
    }
}

impl fmt::Display for ServerPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerPacket::Request { token, call: Some(call) } => write!(f, "is requested to do #{token}, {call}"),
            ServerPacket::Request { token, call: None } => write!(f, "is requested to do #{token}"),
            ServerPacket::Answer { token } => write!(f, "is told the end of #{token}"),
            ServerPacket::HandedIn { call, outcome } => write!(f, "is told what became of {call}: {outcome:?}"),
            ServerPacket::Closed => write!(f, "is told that the process closes"),
        }
    }
}

impl fmt::Display for PeerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerMessage::Beat { seq, hello, .. } => write!(f, "a heartbeat, at change {seq}, hello {hello}"),
            PeerMessage::Away => write!(f, "it lives, but hears nothing"),
            PeerMessage::Farewell => write!(f, "farewell"),
            PeerMessage::Change(numbered) => write_change(f, numbered),
            PeerMessage::AskSnapshot => write!(f, "what do your sockets have?"),
            PeerMessage::Part(part) => write_part(f, part),
            PeerMessage::ShuttingDown => write!(f, "it shuts down"),
            PeerMessage::Noted => write!(f, "noted"),
            PeerMessage::Request(request) => {
                let PeerRequest { request, target, token, .. } = &**request;
                write!(f, "request {request}: #{token} for socket {}", target.0)
            }
            PeerMessage::Reply { request, given } => write!(f, "reply to request {request}: {given}"),
            PeerMessage::Absent { request } => write!(f, "request {request}: the socket is not there"),
            PeerMessage::Unanswered { request } => write!(f, "request {request}: there will be no answer"),
            PeerMessage::Recall(requests) => write!(f, "which of {requests:?} are not being served?"),
            PeerMessage::Unserved(requests) => write!(f, "not being served: {requests:?}"),
            PeerMessage::Resumed(resumed) => write!(f, "{resumed}"),
            PeerMessage::HandIn { request, call, value, .. } => {
                write!(f, "request {request}: {value} is handed in for call {}", call.0)
            }
            PeerMessage::HandedIn { request, taken } => write!(f, "request {request}: taken {taken}"),
        }
    }
}

impl fmt::Display for Resumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "socket {} is now socket {}, and has", self.old + 1, self.new + 1)?;
        self.has.iter().try_for_each(|call| write!(f, " {call},"))
    }
}

fn write_change(f: &mut fmt::Formatter<'_>, NumberedChange { seq, change }: &NumberedChange) -> fmt::Result {
    write!(f, "change {seq}: ")?;
    match change {
        SocketChange::Joined { socket, user, method, .. } => write!(f, "socket {} has {user}:{method}", socket.0),
        SocketChange::Left { socket, method } => write!(f, "socket {} took {method} back", socket.0),
        SocketChange::Gone { socket, cause } => write!(f, "socket {} is gone: {cause:?}", socket.0),
    }
}

fn write_part(f: &mut fmt::Formatter<'_>, SnapshotPart { seq, index, last, sockets }: &SnapshotPart) -> fmt::Result {
    write!(f, "snapshot {seq}, part {index}{}:", if *last { ", the last" } else { "" })?;
    let mut sockets = sockets.iter();
    sockets.try_for_each(|announced| write!(f, " socket {} ({})", announced.socket.0, announced.methods.len()))
}
