//! Describes clients, their connections and the requests that they work on.

use crate::calls::events::{CallRef, CallToken, ClientId, Connection, Process};
use crate::time::WorldTime;

/// A client. It comes back after its connection broke, until it leaves for good.
#[derive(Default)]
pub(crate) struct SimulatedClient {
    pub(crate) user: usize,
    /// It can hand in results after a reconnect.
    pub(crate) is_resumable: bool,
    /// When it is back, it says which requests it has.
    pub(crate) is_resuming: bool,
    /// The previous connection, until it has said which of its requests it has.
    pub(crate) former: Option<Connection>,
    /// The rooms it registers when it connects, as bits; none for one that only calls.
    pub(crate) rooms: u8,
    /// The connection it believes to have.
    pub(crate) connection: Option<Connection>,
    pub(crate) is_connecting: bool,
    pub(crate) has_left: bool,
    pub(crate) connections: u64,
    /// When it has done all its work, if it does one request after the other.
    pub(crate) busy_until: WorldTime,
    pub(crate) jobs: Vec<DaemonJob>,
    pub(crate) finished: Vec<UnsentResult>,
}

/// A request that a daemon works on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DaemonJob {
    pub(crate) token: CallToken,
    pub(crate) call: Option<CallRef>,
    pub(crate) connection: Connection,
}

/// A result that could not be sent by the connection of its request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnsentResult {
    pub(crate) call: CallRef,
    pub(crate) value: u64,
    pub(crate) at: WorldTime,
    /// It was sent by the present connection, or waits to be sent again.
    pub(crate) is_sent: bool,
}

/// One connection, from its beginning to its end on both sides.
#[derive(Default)]
pub(crate) struct ClientConnection {
    pub(crate) client: ClientId,
    pub(crate) process: Process,
    /// Nothing passes any more.
    pub(crate) is_cut: bool,
    /// The process has accepted it and does not know that it has ended.
    pub(crate) is_accepted: bool,
    /// The rooms it has registered, as the process knows it.
    pub(crate) rooms: u8,
    /// When the last packet of each direction arrives. No packet overtakes another.
    pub(crate) last_up: WorldTime,
    pub(crate) last_down: WorldTime,
    /// How many packets it has carried, both ways.
    pub(crate) packets: u64,
}
