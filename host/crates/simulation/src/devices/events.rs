//! Lists the events of a world of devices. Replicas, devices and sockets are named by their indices.

use std::sync::Arc;

use pointwork_core::SocketId;
use pointwork_core::decisions::{Departure, SettleVerdict};
use pointwork_core::devices::{DeviceRecord, OpId, OwnerAnswer, RegisterId, StoreAway, SwapResult};
use pointwork_core::experiments::Exposure;

#[derive(Debug)]
pub(super) enum DeviceEvent {
    /// A client opens the next socket of a burst.
    OpenNext { device: usize },
    /// A connection opens again.
    Reopen { device: usize, connector: usize },
    /// A socket is open at its replica.
    Arrive { socket: usize },
    /// Its `device:register` arrives.
    Register { socket: usize },
    /// It answers a ping.
    Ping { socket: usize },
    /// It gives a heartbeat.
    Heartbeat { socket: usize },
    /// A client closes a socket.
    ClientCloses { socket: usize },
    /// A socket is half-open from now on.
    TurnsHalfOpen { socket: usize },
    /// A client hears that its socket has ended.
    ClientNotices { socket: usize, end: SocketEnd },
    /// A replica notices that a socket has ended.
    ReplicaNotices { socket: usize, how: Departure },
    /// A device's network breaks.
    NetworkBreaks { device: usize, nth: u64 },
    /// A device moves to another network.
    DeviceMoves { device: usize, nth: u64 },
    /// The host has looked at a token.
    Proof { replica: usize, socket: usize, register: RegisterId },
    /// The rule has answered.
    Verdict { op: DeviceOperation, verdict: SettleVerdict, exposure: Option<Exposure> },
    /// A read of a record reaches the store.
    Read { op: DeviceOperation },
    /// The replica has the record.
    ReadDone { op: DeviceOperation, result: Box<Result<DeviceRecord, StoreAway>> },
    /// A compare-and-set reaches the store.
    Swap { op: DeviceOperation, expected: u64, record: Box<DeviceRecord> },
    /// The replica knows what became of it.
    SwapDone { op: DeviceOperation, swapped: SwapResult },
    /// A replica is asked about its socket.
    AskOwner { op: DeviceOperation, uid: Arc<str>, socket: SocketId, is_lost: bool },
    /// The asking replica has the answer, or gave up waiting for one.
    OwnerAnswered { op: DeviceOperation, answer: OwnerAnswer },
    /// A replica is told to evict a socket.
    Evict { from: usize, device: usize, epoch: u64, uid: Arc<str>, socket: SocketId, after_ms: u32 },
    /// The replica that asked knows that it was.
    EvictConfirmed { replica: usize, device: usize, epoch: u64 },
    /// Replicas are killed.
    Kill { nth: u64 },
    /// All others know that a replica is dead, and look for records that name it; again a few times.
    DeathNoticed { replica: usize, scans_left: u32 },
    /// A replica starts in the place of a killed one.
    Start,
    /// The store cannot be reached.
    StoreAway,
    /// The store is back.
    StoreBack { is_empty: bool },
    /// A replica's connection to the store is there again.
    StoreReconnected { replica: usize },
    /// An operator changes a device's record.
    #[cfg(test)]
    Operate { device: usize, change: OperatorChange },
    /// A flaw: a device is said to be offline.
    #[cfg(test)]
    FalseOffline { device: usize },
}

/// A question or store operation of a replica about a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceOperation {
    pub(super) replica: usize,
    pub(super) device: usize,
    pub(super) id: OpId,
}

/// How a client's socket ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SocketEnd {
    /// It was told when to come back, in milliseconds.
    Refused { retry_after_ms: u32 },
    /// Another socket has the session.
    Evicted,
    /// The connection broke.
    Lost,
}

/// What an operator does to a device.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperatorChange {
    Disconnect,
    Block,
    Unblock,
    Pair,
}
