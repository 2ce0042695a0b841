//! The commands of the device sessions. The host carries them out in the order given, outside the lock of the machine.

use std::sync::Arc;

use super::event::SessionEvent;
use super::record::{DeviceRecord, DeviceStatus, Holder};
use super::registration::{AuthError, CloseReason, OpId, RegisterId, ThrottleReason};
use crate::decisions::{Event, Incumbent, Newcomer};
use crate::experiments::{Exposure, Trial};
use crate::ids::SocketId;

/// One thing to do. Questions and store operations have a number and are answered once; what is not answered within
/// [`crate::devices::DeviceSettings::step_timeout_ms`] counts as failed, and an answer after that is dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceCommand {
    /// Check the token that the socket brought with its register, and bring what came of it by
    /// [`crate::devices::DeviceSessions::handle_proof`].
    CheckToken {
        /// The socket.
        socket: SocketId,
        /// Its register.
        register: RegisterId,
    },
    /// Read the device's record and bring it by [`crate::devices::DeviceSessions::handle_read`], or
    /// [`crate::devices::DeviceSessions::handle_unreadable`].
    Read {
        /// The device.
        device: Arc<str>,
        /// The operation's number.
        op: OpId,
    },
    /// Ask a replica about its socket, which is answered there by [`crate::devices::DeviceSessions::owner_answer`], and bring the
    /// answer by [`crate::devices::DeviceSessions::handle_owner`]: [`crate::devices::OwnerAnswer::Gone`] if the replica is known to be
    /// dead, [`crate::devices::OwnerAnswer::Silent`] if no answer came.
    AskOwner {
        /// The device.
        device: Arc<str>,
        /// The question's number.
        op: OpId,
        /// The replica's uid.
        replica: Arc<str>,
        /// Its socket.
        socket: SocketId,
    },
    /// Ask `settle` and bring the verdict by [`crate::devices::DeviceSessions::handle_verdict`].
    AskSettle {
        /// The device; the hash of its id is the key of the decision.
        device: Arc<str>,
        /// The question's number.
        op: OpId,
        /// The newcomer's socket.
        socket: SocketId,
        /// The operator's settle window, in milliseconds.
        window_ms: u32,
        /// What is known of the incumbent; never one that is proven gone.
        incumbent: Incumbent,
        /// What is known of the newcomer.
        newcomer: Newcomer,
        /// Newest first; at most [`crate::decisions::HISTORY_MAX`].
        history: Vec<Event>,
        /// What the record says of the device's exposure to an experiment: while its horizon lasts it stays in its arm.
        trial: Option<Box<Trial>>,
        /// The arm that decided when the same register was decided before, and nothing was written: it is to decide again.
        pinned: Option<Box<Exposure>>,
    },
    /// Write the record if the store's has the epoch `expected` (0: if there is none), in one step, and bring what became of
    /// it by [`crate::devices::DeviceSessions::handle_swapped`].
    ///
    /// So that the devices of a dead replica are found, the host keeps for each replica the set of those whose record names
    /// it as holder's or, while their status is not offline, in `ended`; in the same step as the record.
    Swap {
        /// The device.
        device: Arc<str>,
        /// The operation's number.
        op: OpId,
        /// The epoch that the record must have.
        expected: u64,
        /// The new record, with a greater epoch.
        record: Box<DeviceRecord>,
    },
    /// Tell the socket `device:registered`; of a device whose status is provisioning with a token for it.
    Registered {
        /// The socket.
        socket: SocketId,
        /// The device.
        device: Arc<str>,
        /// Its status.
        status: DeviceStatus,
        /// The code in the record of one that is provisioning, which its token carries. Never one without: a token without a code is
        /// that of a paired device.
        pairing_code: Option<Arc<str>>,
    },
    /// Tell the socket `device:throttled`. [`DeviceCommand::Close`] follows.
    Throttled {
        /// The socket.
        socket: SocketId,
        /// Why.
        reason: ThrottleReason,
        /// When it may come back, in milliseconds from now.
        retry_after_ms: u32,
    },
    /// Tell the socket `device:auth-error`. [`DeviceCommand::Close`] follows, unless it holds a session.
    AuthError {
        /// The socket.
        socket: SocketId,
        /// Why.
        error: AuthError,
    },
    /// Close the socket, and say so by [`crate::devices::DeviceSessions::handle_close`] when it is closed.
    Close {
        /// The socket.
        socket: SocketId,
        /// Why.
        why: CloseReason,
    },
    /// Tell a replica to evict its socket, which it does by [`crate::devices::DeviceSessions::handle_evict`] and always confirms;
    /// bring the confirmation by [`crate::devices::DeviceSessions::handle_evict_confirmed`]. It is said again until it comes, or the
    /// replica is said to be dead by [`crate::devices::DeviceSessions::handle_replica_gone`].
    EvictRemote {
        /// The device.
        device: Arc<str>,
        /// The epoch of the holding that took its place.
        epoch: u64,
        /// The replica's uid.
        replica: Arc<str>,
        /// Its socket.
        socket: SocketId,
        /// The socket loses the session at once, and is closed after so many milliseconds.
        after_ms: u32,
    },
    /// Tell the socket that its heartbeat does not count, and who holds the session as far as this replica knows.
    HeartbeatRefused {
        /// The socket.
        socket: SocketId,
        /// The device that it named.
        device: Arc<str>,
        /// Who holds its session.
        holder: Option<Holder>,
    },
    /// Tell dashboards (`dashboard:device-status`). Of two replicas' messages about one device the one with the greater epoch
    /// is the later, in whatever order they arrive: the host drops, or lets the dashboard drop, what comes too late.
    Status {
        /// The device.
        device: Arc<str>,
        /// Its status.
        status: DeviceStatus,
        /// The epoch of the record that says so.
        epoch: u64,
        /// The user or organisation whose dashboards may know.
        owner: Option<Arc<str>>,
        /// When it was last seen, in milliseconds since the Unix epoch.
        last_seen_ms: u64,
    },
    /// Log and count a decision.
    Event(SessionEvent),
}
