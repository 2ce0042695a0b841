//! The events of a world of calls, and what replicas and clients send each other.

use std::rc::Rc;
use std::time::Duration;

use pointwork_core::decisions::{Choice, Verdict};
use pointwork_core::{AskId, CallId, NumberedChange, SnapshotPart, SocketId};

use crate::calls::rooms::Room;

/// A replica's process, numbered from 0 as they were started; never used twice.
pub(crate) type Process = usize;
/// A client, numbered from 0.
pub(crate) type ClientId = usize;
/// A connection of a client to a process: [`SocketId`] is one more.
pub(crate) type Connection = usize;
/// A call as the world knows it, whichever process it is at: what its parameters are.
pub(crate) type CallToken = usize;

/// A call's name for daemons that may hand its result in: the process that knows it, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallRef {
    pub(crate) process: Process,
    pub(crate) call: CallId,
}

/// What a daemon made of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DaemonResult {
    Value(u64),
    /// Something that cannot be passed on.
    Unusable,
}

/// What can happen.
pub(crate) enum CallEvent {
    /// The next step of the schedule.
    Step,
    /// A process sends heartbeats, and does what is due among its peers.
    Tick(Process),
    /// A process looks who is subscribed.
    Look(Process),
    /// A machine wants to be woken.
    Timer(Process),
    /// A policy answers.
    Verdict { process: Process, call: CallId, ask: AskId, verdict: RuleAnswer },
    /// A message of another process, or its own heartbeat, arrives. Those of an earlier epoch of Redis are lost.
    Arrive { to: Process, from: Process, epoch: u32, message: PeerMessage },
    /// A process learns that its subscription is broken.
    Interrupted(Process),
    /// A process is connected to Redis, for the first time or again; what belongs to an older break is void.
    Attached { process: Process, breaks: u32 },
    /// A message with a request could not be sent.
    SendFailed { process: Process, request: u32 },
    /// A process waits no longer for the answer to a peer's request.
    AckOver { process: Process, peer: Process, request: u32 },
    /// Nobody has answered a hand-in.
    HandInOver { process: Process, request: u32 },
    /// Redis sees that a connection to a machine that vanished is dead.
    Unsubscribed(Process),
    /// Redis is back.
    RedisUp,
    /// A stopped process runs on.
    Resume(Process),
    /// A process takes the place of one that ended.
    Start,
    /// A slow clock runs as it should.
    PaceEnds(Process),
    /// A process that shuts down looks whether it may.
    ShutdownCheck(Process),
    /// A client's packet arrives at its process.
    ClientPacket { connection: Connection, packet: ClientPacket },
    /// A packet arrives at a client.
    ServerPacket { connection: Connection, packet: ServerPacket },
    /// A process learns that a connection is broken.
    ServerNotices { connection: Connection },
    /// A client learns that its connection is broken, or gives it up.
    ClientNotices { connection: Connection },
    /// A client connects.
    Connect(ClientId),
    /// A daemon has done what a request asked for.
    Finish { client: ClientId, token: CallToken },
    /// A daemon hands in a result once more.
    HandInAgain { client: ClientId, call: CallRef },
}

/// The answer of a rule.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RuleAnswer {
    Choice(Choice),
    Wait(u32),
    Judgement(Verdict),
}

/// What processes tell each other.
#[derive(Debug, Clone)]
pub(crate) enum PeerMessage {
    /// A heartbeat. With `hello` it is to be answered at once.
    Beat { seq: u64, interruptions: u64, hello: bool },
    /// The sender lives, though its subscription is interrupted.
    Away,
    /// The sender ends.
    Farewell,
    /// A change of what the sender's sockets have registered.
    Change(Rc<NumberedChange>),
    /// What have your sockets registered?
    AskSnapshot,
    /// A part of the answer.
    Part(Rc<SnapshotPart>),
    /// The sender shuts down.
    ShuttingDown,
    /// The sender knows that the receiver shuts down.
    Noted,
    /// A request to a socket.
    Request(Box<PeerRequest>),
    /// The socket's answer.
    Reply { request: u32, given: DaemonResult },
    /// The socket is not there.
    Absent { request: u32 },
    /// The socket will not answer.
    Unanswered { request: u32 },
    /// Which of these is not being served?
    Recall(Vec<u32>),
    /// These are not.
    Unserved(Vec<u32>),
    /// A daemon is back on another socket.
    Resumed(Rc<Resumed>),
    /// The result of a call of the receiver.
    HandIn { request: u32, user: usize, call: CallId, value: u64 },
    /// What became of it.
    HandedIn { request: u32, taken: bool },
}

/// A request to a socket of another process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerRequest {
    pub(crate) request: u32,
    pub(crate) target: SocketId,
    pub(crate) token: CallToken,
    /// For a daemon that may hand its result in.
    pub(crate) call: Option<CallRef>,
    /// How long its answer is waited for.
    pub(crate) left: Duration,
}

/// A daemon is back on another socket, and has these requests.
#[derive(Debug)]
pub(crate) struct Resumed {
    pub(crate) user: usize,
    pub(crate) old: Connection,
    pub(crate) new: Connection,
    pub(crate) has: Vec<CallRef>,
}

/// What a client sends.
#[derive(Debug, Clone)]
pub(crate) enum ClientPacket {
    /// It connects.
    Hello,
    /// It is a daemon that is back on another socket.
    Resumed(Rc<Resumed>),
    /// It registers a method.
    Register(Room),
    /// It takes a method back.
    Unregister(Room),
    /// It calls a method.
    Call { token: CallToken, room: Room, timeout_ms: u64 },
    /// It answers a request.
    Ack { token: CallToken, given: DaemonResult },
    /// It hands in the result of a call.
    HandIn { call: CallRef, value: u64 },
    /// It closes the connection on purpose.
    Close,
}

/// What a client is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ServerPacket {
    /// A request to a daemon.
    Request { token: CallToken, call: Option<CallRef> },
    /// A call has ended, or was not taken on.
    Answer { token: CallToken },
    /// What became of a result that was handed in.
    HandedIn { call: CallRef, outcome: HandInOutcome },
    /// The process closes the connection.
    Closed,
}

/// What became of a result that was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandInOutcome {
    Taken,
    /// The call has ended, was never sent, or is another user's: final.
    Unknown,
    /// Try again later.
    Unreachable,
}

/// A socket as the machines know it.
pub(crate) fn socket(connection: Connection) -> SocketId {
    SocketId(connection as u128 + 1)
}

/// The connection that a machine's socket is.
pub(crate) fn connection(socket: SocketId) -> Connection {
    usize::try_from(socket.0).unwrap_or(usize::MAX).saturating_sub(1)
}
