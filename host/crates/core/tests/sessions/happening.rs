//! What can happen in the world.

use std::sync::Arc;

use pointwork_core::SocketId;
use pointwork_core::decisions::{Departure, SettleVerdict};
use pointwork_core::devices::{DeviceRecord, OpId, OwnerAnswer, RegisterId, StoreAway, SwapResult};
use pointwork_core::experiments::Exposure;

use crate::clients::Brings;

/// `replica` is the index of the one it happens at.
#[derive(Debug)]
pub(crate) enum Happening {
    Timeout {
        replica: usize,
    },
    Open {
        socket: SocketId,
        replica: usize,
        device: Arc<str>,
        brings: Brings,
        heartbeats: bool,
    },
    Register {
        socket: SocketId,
    },
    Tick {
        socket: SocketId,
    },
    /// The client is gone and its replica does not know.
    HalfOpen {
        socket: SocketId,
    },
    Closed {
        socket: SocketId,
        how: Departure,
    },
    Proof {
        replica: usize,
        socket: SocketId,
        register: RegisterId,
        is_good: bool,
    },
    Verdict {
        replica: usize,
        device: Arc<str>,
        op: OpId,
        verdict: SettleVerdict,
        exposure: Option<Exposure>,
    },
    Read {
        replica: usize,
        device: Arc<str>,
        op: OpId,
    },
    ReadDone {
        replica: usize,
        device: Arc<str>,
        op: OpId,
        result: Box<Result<DeviceRecord, StoreAway>>,
    },
    Swap {
        replica: usize,
        device: Arc<str>,
        op: OpId,
        expected: u64,
        record: Box<DeviceRecord>,
    },
    SwapDone {
        replica: usize,
        device: Arc<str>,
        op: OpId,
        swapped: SwapResult,
    },
    AskOwner {
        replica: usize,
        device: Arc<str>,
        op: OpId,
        uid: Arc<str>,
        socket: SocketId,
        is_lost: bool,
    },
    OwnerSays {
        replica: usize,
        device: Arc<str>,
        op: OpId,
        answer: OwnerAnswer,
    },
    Evict {
        from: usize,
        device: Arc<str>,
        epoch: u64,
        uid: Arc<str>,
        socket: SocketId,
        after_ms: u32,
    },
    EvictConfirmed {
        replica: usize,
        device: Arc<str>,
        epoch: u64,
    },
    /// A mutation.
    FalseOffline {
        device: Arc<str>,
    },
    Kill {
        replica: usize,
    },
    /// All know that it is dead, and look for records that name it; again a few times.
    DeadKnown {
        uid: Arc<str>,
        scans_left: u32,
    },
    Restart,
    StoreAway,
    StoreBack {
        is_empty: bool,
    },
    /// A replica's connection to the store is there again.
    StoreSaidBack {
        replica: usize,
    },
    Operate {
        device: Arc<str>,
        operator: Operator,
    },
}

/// What an operator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Disconnect,
    Block,
    Unblock,
    Pair,
}
