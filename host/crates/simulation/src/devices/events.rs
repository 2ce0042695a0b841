//! What can happen in a world of devices. Replicas, devices and sockets are named by their index.

use std::sync::Arc;

use pointwork_core::SocketId;
use pointwork_core::decision::Departure;
use pointwork_core::device::{OpId, OwnerAnswer, Record, StoreAway, Swapped};

#[derive(Debug)]
pub(super) enum Event {
    /// The client opens a socket of its own accord: the next of a burst.
    OpenNext {
        device: usize,
    },
    /// A connection opens again.
    Reopen {
        device: usize,
        connector: usize,
    },
    /// A socket is open at its replica.
    Arrive {
        socket: usize,
    },
    /// Its `device:register` is there.
    Register {
        socket: usize,
    },
    /// An answer to a ping.
    Ping {
        socket: usize,
    },
    /// A heartbeat.
    Beat {
        socket: usize,
    },
    /// A client closes a socket.
    ClientCloses {
        socket: usize,
    },
    /// A socket goes half-open as its device has left the network by which it was opened.
    Fades {
        socket: usize,
    },
    /// A client hears that its socket has ended.
    Hears {
        socket: usize,
        heard: EndHeard,
    },
    /// A replica notices that a socket has ended.
    Notices {
        socket: usize,
        how: Departure,
    },
    /// A device's network breaks.
    Drop {
        device: usize,
        nth: u64,
    },
    /// A device moves to another network.
    Move {
        device: usize,
        nth: u64,
    },
    Read {
        op: Op,
    },
    ReadDone {
        op: Op,
        result: Box<Result<Record, StoreAway>>,
    },
    Swap {
        op: Op,
        expected: u64,
        record: Box<Record>,
    },
    SwapDone {
        op: Op,
        swapped: Swapped,
    },
    AskOwner {
        op: Op,
        uid: Arc<str>,
        socket: SocketId,
        is_lost: bool,
    },
    OwnerSays {
        op: Op,
        answer: OwnerAnswer,
    },
    Evict {
        from: usize,
        device: usize,
        epoch: u64,
        uid: Arc<str>,
        socket: SocketId,
        after_ms: u32,
    },
    EvictConfirmed {
        replica: usize,
        device: usize,
        epoch: u64,
    },
    /// Replicas are killed.
    Kill {
        nth: u64,
    },
    /// All others know that a replica is dead, and look for records that name it; again a few times.
    DeadKnown {
        replica: usize,
        scans_left: u32,
    },
    /// A new replica is there.
    Start,
    StoreAway {
        nth: u64,
    },
    StoreBack {
        is_empty: bool,
    },
    /// A replica's connection to the store is there again.
    StoreSaidBack {
        replica: usize,
    },
}

/// A question or store operation of a replica about a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    pub(super) replica: usize,
    pub(super) device: usize,
    pub(super) id: OpId,
}

/// How a client's socket ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndHeard {
    /// It was told when to come back, in milliseconds.
    Refused { retry_after_ms: u32 },
    /// Another socket has the session.
    Evicted,
    /// The connection broke.
    Lost,
}
