//! Describes the process of one replica: the real machines, and what a host keeps beside them.

use std::collections::VecDeque;

use pointwork_core::{Announcer, CallId, CallSettings, PeerDirectory, PeerSettings, SocketId};

use crate::calls::events::{CallEvent, CallRef, CallToken, Connection, PeerMessage, Process};
use crate::calls::liveness::Liveness;
use crate::time::{ReplicaClock, WorldTime};

/// The call machine of a process; tests break it on purpose.
#[cfg(not(test))]
pub(crate) type SimulatedMachine = pointwork_core::CallMachine<u64>;
#[cfg(test)]
pub(crate) type SimulatedMachine = crate::calls::tests::FlawedMachine;

/// How many processes a schedule sees at most, one after the other.
pub(crate) const PROCESSES_MAX: usize = 16;

pub(crate) struct CallReplica {
    pub(crate) state: ProcessState,
    pub(crate) clock: ReplicaClock,
    pub(crate) machine: SimulatedMachine,
    pub(crate) announcer: Announcer,
    pub(crate) directory: PeerDirectory<Process>,
    pub(crate) liveness: Liveness,
    /// The token of each call by its number, less one.
    pub(crate) calls: Vec<CallToken>,
    /// Requests to peers that are not answered yet.
    pub(crate) requests: Vec<OpenRequest>,
    /// Results that were handed in here for calls of peers and are not answered yet.
    pub(crate) hand_ins: Vec<OpenHandIn>,
    pub(crate) last_request: u32,
    /// Acknowledgements that sockets of this process owe.
    pub(crate) awaited: Vec<AwaitedAck>,
    pub(crate) link: RedisLink,
    /// How many of the next messages to it are lost because it takes them too slowly.
    pub(crate) overrun: usize,
    pub(crate) interruptions: u64,
    pub(crate) is_recall_due: bool,
    pub(crate) shutdown: Option<Shutdown>,
    /// Events that wait because it is stopped.
    pub(crate) backlog: VecDeque<CallEvent>,
    /// When the earliest timer of its machine fires.
    pub(crate) alarm: Option<WorldTime>,
    pub(crate) ticks: u32,
    /// When its last message to each process arrives. The next one does not overtake it.
    pub(crate) arrivals: [WorldTime; PROCESSES_MAX],
    /// How many messages it has sent.
    pub(crate) messages: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessState {
    Running,
    /// It hangs. Its events wait, and none is lost.
    Stopped,
    Ended,
}

/// Its connections to Redis.
#[derive(Default)]
pub(crate) struct RedisLink {
    /// It receives messages.
    pub(crate) hears: bool,
    /// Its messages reach Redis.
    pub(crate) speaks: bool,
    /// Redis counts it as subscribed.
    pub(crate) is_subscribed: bool,
    /// Packets vanish, and neither side knows. Messages wait for the network.
    pub(crate) is_stalled: bool,
    /// How often it broke. Events of an older break are ignored.
    pub(crate) breaks: u32,
    /// Messages that wait to be sent: the receiver, the message, and the request that fails with it.
    pub(crate) unsent: VecDeque<(Option<Process>, PeerMessage, Option<u32>)>,
    /// Messages that wait to be received.
    pub(crate) unheard: VecDeque<(Process, PeerMessage)>,
}

pub(crate) struct OpenRequest {
    pub(crate) request: u32,
    pub(crate) peer: Process,
    pub(crate) call: CallId,
    pub(crate) target: SocketId,
}

pub(crate) struct OpenHandIn {
    pub(crate) request: u32,
    pub(crate) connection: Connection,
    pub(crate) call: CallRef,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct AwaitedAck {
    pub(crate) connection: Connection,
    pub(crate) token: CallToken,
    pub(crate) origin: Origin,
}

/// The call or the peer's request that an acknowledgement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Here(CallId),
    Peer { process: Process, request: u32 },
}

/// An orderly shutdown that is in progress.
pub(crate) struct Shutdown {
    /// When calls in flight end by force.
    pub(crate) until: WorldTime,
    /// The peers that know of it.
    pub(crate) noted: Vec<Process>,
}

impl CallReplica {
    /// A process that has just started and is not connected to Redis yet.
    pub(crate) fn new(now: WorldTime) -> CallReplica {
        CallReplica {
            state: ProcessState::Running,
            clock: ReplicaClock::new(now),
            machine: SimulatedMachine::new(CallSettings::default()),
            announcer: Announcer::new(),
            directory: PeerDirectory::new(PeerSettings::default()),
            liveness: Liveness::default(),
            calls: Vec::new(),
            requests: Vec::new(),
            hand_ins: Vec::new(),
            last_request: 0,
            awaited: Vec::new(),
            link: RedisLink::default(),
            overrun: 0,
            interruptions: 0,
            is_recall_due: false,
            shutdown: None,
            backlog: VecDeque::new(),
            alarm: None,
            ticks: 0,
            arrivals: [WorldTime::ZERO; PROCESSES_MAX],
            messages: 0,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state == ProcessState::Running
    }

    /// Whether it accepts clients.
    pub(crate) fn is_open(&self) -> bool {
        self.is_running() && self.shutdown.is_none()
    }

    pub(crate) fn next_request(&mut self) -> u32 {
        self.last_request += 1;
        self.last_request
    }
}
