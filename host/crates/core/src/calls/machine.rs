//! The call machine of one shard of users: it takes every rpc-call from its arrival to its one answer.
//!
//! ```text
//! handle_call ─ candidates ─ AskTarget ─ picked ─ Emit ─ result ───────────────────────── Result
//!      │            │            │ │               ├─ target leaves ─ AskPresence ─ abort ─ TargetDisconnected
//!      │            │            │ │               │        └─ hold ─ asked again, or handed in ── Result
//!      │            │            │ │               ├─ lost with the link ───────────────── Unreachable
//!      │            │            │ │               └─ deadline ───────────────────────── TimedOut
//!      │            │            │ └─ picked itself ───────────────────────────────────── SameSocket
//!      │            │            └─ reject ────────────────────────────────────────────── Unavailable
//!      │            └─ all of them beyond a link that is down ─────────────────────────── Unreachable
//!      └─ nobody ─ AskGrace ─ wait ─ registers ─ AskTarget
//!                                └─ 0, or over ────────────────────────────────────────── Unavailable
//! ```
//!
//! The host calls a `handle_*` under a lock, drains [`CallMachine::next_command`], unlocks, and carries the commands out. It asks
//! policies outside the lock, and anything may happen meanwhile. So each question has a number ([`crate::ids::AskId`]), and
//! only an answer to the last question of a call counts. If a picked socket has left, `target` is asked again. After
//! [`TARGET_ASKS_MAX`] times in a row the native rule picks among the sockets that are there.
//!
//! The machine knows the sockets of all replicas, as far as the host does. A silent replica takes its sockets out of the
//! directory, but its silence proves nothing: calls in flight to them stay in doubt. The doubt ends with news of the socket (it
//! is proven gone, or has the method again), with its answer, or at the deadline. While the link to the other replicas is
//! down, only sockets of this replica are offered.
//!
//! Every handler first does what was due at `now`, so a machine that is woken late behaves as if it had been woken in time. A
//! `now` that is before an earlier one counts as the earlier one: threads may read the clock before they take the lock.
//!
//! # Invariants
//!
//! - **one-answer**: every call that was taken on ends with exactly one `Answer`, or with one `Forget` if its caller left.
//! - **in-time**: no call is open after its deadline: its timeout after it arrived or, once it is sent, its timeout after
//!   that. No policy moves the deadline.
//! - **sent-once**: a request is emitted at most once, whatever happens to its target.
//! - **no-invented-success**: a `Result` is what a daemon answered to the request of that call, or what a daemon of the same user
//!   handed in for a request that was sent as resumable.
//! - **positive-evidence**: `TargetDisconnected` is answered only after the request was sent, `presence` gave the call up, and the
//!   target left the method's room, or its replica fell silent, or it came back without the request. Weaker news never
//!   takes back the proof that a target is gone.
//! - **unreachable-is-said**: `Unreachable` is answered only to a call that no socket of this replica could take while the link
//!   is down, or after the host said that the answer is lost.
//! - **no-waiting-while-served**: no call waits for a method that some socket has registered, unless all such sockets are at
//!   replicas that shut down.
//! - **one-timer**: every open call has exactly one timer. A settled call has no timer, question or entry anywhere.
//! - **in-flight**: a socket's calls in flight are those that were emitted to it and have not ended, even if the socket left.
//! - **nothing-left**: when the last call ended and the last socket left, only the bounded history remains.

mod call_events;
mod socket_events;
mod transitions;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::call_index::CallIndex;
use super::command::CallCommand;
use super::directory::{Directory, Reach};
use super::open_call::{CallStage, OpenCall};
use super::settings::CallSettings;
use super::warnings::Warnings;
use crate::ids::{CallId, SocketId};
use crate::room::RpcRoom;
use crate::time::Time;

/// How often in a row `target` is asked about a call before the native rule picks: each time the pick had left.
pub const TARGET_ASKS_MAX: u32 = 3;
/// How soon `presence` is asked again at the earliest, in milliseconds: the bound of the policy contract.
pub const RECHECK_MIN_MS: u32 = 10;
/// How long a call that can no longer be answered waits for the news that its target left. The end of a connection ends
/// its acknowledgements first, and the caller should be told the true reason.
pub const UNANSWERABLE: Duration = Duration::from_secs(1);

/// The call machine. `R` is a daemon's result, carried through unseen.
#[derive(Debug)]
pub struct CallMachine<R> {
    settings: CallSettings,
    /// The latest moment it was told.
    now: Time,
    directory: Directory,
    /// Whose sockets a request can be sent to.
    reach: Reach,
    calls: HashMap<CallId, OpenCall>,
    last_call: u64,
    by_caller: CallIndex<SocketId>,
    /// Calls in flight, those in doubt included.
    by_target: CallIndex<SocketId>,
    /// Calls of a room that nobody is in: held, or `grace` is being asked.
    waiting: CallIndex<RpcRoom>,
    by_user: CallIndex<Arc<str>>,
    /// One entry per open call.
    timers: BTreeSet<(Time, CallId)>,
    warnings: Warnings,
    commands: VecDeque<CallCommand<R>>,
}

/// How much a call machine holds, for gauges and for the proof that nothing is left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallLoad {
    /// Connected sockets, of all replicas.
    pub sockets: usize,
    /// Methods that somebody has registered.
    pub rooms: usize,
    /// Methods whose absences are remembered.
    pub remembered_rooms: usize,
    /// Calls that are not answered yet.
    pub calls: usize,
    /// Of these, calls that nobody is there for.
    pub waiting: usize,
    /// Of these, calls that were sent to a daemon.
    pub in_flight: usize,
    /// Timers.
    pub timers: usize,
    /// Users with open calls.
    pub calling_users: usize,
    /// Sockets with open calls.
    pub callers: usize,
}

impl<R> CallMachine<R> {
    /// A call machine without sockets and calls.
    pub fn new(settings: CallSettings) -> CallMachine<R> {
        CallMachine {
            settings,
            now: Time::ZERO,
            directory: Directory::new(settings),
            reach: Reach::All,
            calls: HashMap::new(),
            last_call: 0,
            by_caller: CallIndex::new(),
            by_target: CallIndex::new(),
            waiting: CallIndex::new(),
            by_user: CallIndex::new(),
            timers: BTreeSet::new(),
            warnings: Warnings::default(),
            commands: VecDeque::new(),
        }
    }

    /// Does what is due. To be called when [`CallMachine::poll_timeout`] says so; at any other time it does no harm.
    pub fn handle_timeout(&mut self, now: Time) {
        let now = self.advance(now);
        self.directory.forget_old(now);
        self.warnings.forget_old(now);
    }

    /// When [`CallMachine::handle_timeout`] is to be called next; `None` while no call is open.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The next thing to do, in the order it came up.
    pub fn next_command(&mut self) -> Option<CallCommand<R>> {
        self.commands.pop_front()
    }

    /// The sockets and what they registered.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The calls that were emitted to a socket and have not ended.
    pub fn in_flight(&self, socket: SocketId) -> usize {
        self.by_target.count(&socket)
    }

    /// The calls that a socket made and that have not ended: those in flight, or all of them.
    pub fn made_by(&self, caller: SocketId, only_in_flight: bool) -> usize {
        if !only_in_flight {
            return self.by_caller.count(&caller);
        }
        let calls = self.by_caller.of(&caller).into_iter().filter_map(|id| self.calls.get(&id));
        calls.filter(|call| matches!(call.stage, CallStage::InFlight(_))).count()
    }

    /// Whether a call waits for this method, or `grace` is being asked about one.
    pub fn is_waiting(&self, room: &RpcRoom) -> bool {
        self.waiting.count(room) > 0
    }

    /// How much there is of everything.
    pub fn load(&self) -> CallLoad {
        CallLoad {
            sockets: self.directory.sockets(),
            rooms: self.directory.rooms(),
            remembered_rooms: self.directory.remembered(),
            calls: self.calls.len(),
            waiting: self.waiting.total(),
            in_flight: self.by_target.total(),
            timers: self.timers.len(),
            calling_users: self.by_user.keys(),
            callers: self.by_caller.keys(),
        }
    }
}
