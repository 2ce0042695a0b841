//! Lists the events of a world of calls, the messages between replicas, and the packets between replicas and clients.

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
/// A call as the world numbers it, whichever process it is at.
pub(crate) type CallToken = usize;

/// The name of a call for daemons that may hand in its result: its process and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallRef {
    pub(crate) process: Process,
    pub(crate) call: CallId,
}

/// A daemon's answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DaemonResult {
    Value(u64),
    /// An answer that cannot be passed on.
    Unusable,
}

/// What can happen.
pub(crate) enum CallEvent {
    /// The next step of the schedule.
    Step,
    /// A process sends a heartbeat when it is due, and checks its peers.
    Tick(Process),
    /// A process checks which peers are subscribed.
    Look(Process),
    /// A machine's timer fires.
    Timer(Process),
    /// A late answer of a policy arrives.
    Verdict { process: Process, call: CallId, ask: AskId, verdict: RuleAnswer },
    /// A message of another process, or its own heartbeat, arrives. Those of an earlier epoch of Redis are lost.
    Arrive { to: Process, from: Process, epoch: u32, message: PeerMessage },
    /// A process learns that its subscription is broken.
    Interrupted(Process),
    /// A process is connected to Redis. It is ignored if the link broke again since.
    Attached { process: Process, breaks: u32 },
    /// A message with a request could not be sent.
    SendFailed { process: Process, request: u32 },
    /// The time for the answer to a peer's request is over.
    AckOver { process: Process, peer: Process, request: u32 },
    /// The time for the answer to a hand-in is over.
    HandInOver { process: Process, request: u32 },
    /// Redis notices that the connection of a vanished process is dead.
    Unsubscribed(Process),
    /// Redis is back.
    RedisUp,
    /// A stopped process continues.
    Resume(Process),
    /// A process starts in the place of one that ended.
    Start,
    /// A slow clock runs at its normal speed again.
    PaceEnds(Process),
    /// A process that shuts down checks whether it may end.
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
    /// A daemon has finished a request.
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

/// A message from one process to another.
#[derive(Debug, Clone)]
pub(crate) enum PeerMessage {
    /// A heartbeat. With `hello` it is to be answered at once.
    Beat { seq: u64, interruptions: u64, hello: bool },
    /// The sender lives, but its subscription is interrupted.
    Away,
    /// The sender ends.
    Farewell,
    /// A change of what the sender's sockets have registered.
    Change(Rc<NumberedChange>),
    /// Asks what the sockets of the receiver have registered.
    AskSnapshot,
    /// A part of the answer to `AskSnapshot`.
    Part(Rc<SnapshotPart>),
    /// The sender shuts down.
    ShuttingDown,
    /// The sender knows that the receiver shuts down.
    Noted,
    /// A request to a socket.
    Request(Box<PeerRequest>),
    /// The socket's answer.
    Reply { request: u32, given: DaemonResult },
    /// The socket of a request does not exist.
    Absent { request: u32 },
    /// The socket of a request will not answer it.
    Unanswered { request: u32 },
    /// Asks which of these requests the receiver is not serving.
    Recall(Vec<u32>),
    /// These requests are not being served.
    Unserved(Vec<u32>),
    /// A daemon is back on another socket.
    Resumed(Rc<Resumed>),
    /// A daemon hands in the result of a call of the receiver.
    HandIn { request: u32, user: usize, call: CallId, value: u64 },
    /// The outcome of `HandIn`.
    HandedIn { request: u32, taken: bool },
}

/// A request to a socket of another process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerRequest {
    pub(crate) request: u32,
    pub(crate) target: SocketId,
    pub(crate) token: CallToken,
    /// The name of the call, if the daemon may hand in its result.
    pub(crate) call: Option<CallRef>,
    /// How long the sender waits for the answer.
    pub(crate) left: Duration,
}

/// A daemon has reconnected on another socket and still has these requests.
#[derive(Debug)]
pub(crate) struct Resumed {
    pub(crate) user: usize,
    pub(crate) old: Connection,
    pub(crate) new: Connection,
    pub(crate) has: Vec<CallRef>,
}

/// A packet from a client.
#[derive(Debug, Clone)]
pub(crate) enum ClientPacket {
    /// It connects.
    Hello,
    /// A daemon has reconnected on another socket.
    Resumed(Rc<Resumed>),
    /// It registers a method.
    Register(Room),
    /// It takes a method back.
    Unregister(Room),
    /// It calls a method.
    Call { token: CallToken, room: Room, timeout_ms: u64 },
    /// Answers a request.
    Ack { token: CallToken, given: DaemonResult },
    /// Hands in the result of a call.
    HandIn { call: CallRef, value: u64 },
    /// It closes the connection on purpose.
    Close,
}

/// A packet to a client.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ServerPacket {
    /// A request to a daemon.
    Request { token: CallToken, call: Option<CallRef> },
    /// A call has ended, or was not taken on.
    Answer { token: CallToken },
    /// The outcome of a result that was handed in.
    HandedIn { call: CallRef, outcome: HandInOutcome },
    /// The process closes the connection.
    Closed,
}

/// The outcome of a result that was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandInOutcome {
    Taken,
    /// Final: the call has ended, was never sent, or is another user's.
    Unknown,
    /// The daemon is to try again later.
    Unreachable,
}

/// Whether the machine took it.
impl From<bool> for HandInOutcome {
    fn from(taken: bool) -> HandInOutcome {
        if taken { HandInOutcome::Taken } else { HandInOutcome::Unknown }
    }
}

/// The machines' identifier of a connection's socket.
pub(crate) fn socket(connection: Connection) -> SocketId {
    SocketId(connection as u128 + 1)
}

/// The connection of a machine's socket.
pub(crate) fn connection(socket: SocketId) -> Connection {
    usize::try_from(socket.0).unwrap_or(usize::MAX).saturating_sub(1)
}
