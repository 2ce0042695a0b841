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
            ClientPacket::Resumed(resumed) => write!(f, "{}", Brief(&**resumed)),
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
            PeerMessage::Change(numbered) => write!(f, "change {}", Brief(&**numbered)),
            PeerMessage::AskSnapshot => write!(f, "what do your sockets have?"),
            PeerMessage::Part(part) => write!(f, "snapshot {}", Brief(&**part)),
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
            PeerMessage::Resumed(resumed) => write!(f, "{}", Brief(&**resumed)),
            PeerMessage::HandIn { request, call, value, .. } => {
                write!(f, "request {request}: {value} is handed in for call {}", call.0)
            }
            PeerMessage::HandedIn { request, taken } => write!(f, "request {request}: taken {taken}"),
        }
    }
}

/// Formats a type of the machines briefly.
struct Brief<'a, T>(&'a T);

impl fmt::Display for Brief<'_, NumberedChange> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.0.seq)?;
        match &self.0.change {
            SocketChange::Joined { socket, user, method, .. } => write!(f, "socket {} has {user}:{method}", socket.0),
            SocketChange::Left { socket, method } => write!(f, "socket {} took {method} back", socket.0),
            SocketChange::Gone { socket, cause } => write!(f, "socket {} is gone: {cause:?}", socket.0),
        }
    }
}

impl fmt::Display for Brief<'_, Resumed> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Resumed { old, new, has, .. } = self.0;
        write!(f, "socket {} is now socket {}, and has", old + 1, new + 1)?;
        has.iter().try_for_each(|call| write!(f, " {call},"))
    }
}

impl fmt::Display for Brief<'_, SnapshotPart> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SnapshotPart { seq, index, last, sockets } = self.0;
        write!(f, "{seq}, part {index}{}:", if *last { ", the last" } else { "" })?;
        for announced in sockets {
            write!(f, " socket {} ({})", announced.socket.0, announced.methods.len())?;
        }
        Ok(())
    }
}
