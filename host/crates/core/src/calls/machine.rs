//! The call machine of one shard of users: every rpc-call from its arrival to its one answer.
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
//! The host calls a `handle_*` under a lock, drains [`CallMachine::next_command`], unlocks and carries the commands
//! out. Policies are asked outside the lock, and anything may happen meanwhile. So each question has a number
//! ([`crate::ids::AskId`]): an answer to any but the last one of a call is dropped, and a pick that has left since is
//! asked about again, [`TARGET_ASKS_MAX`] times in a row at most before the native rule picks among those who are
//! there.
//!
//! The sockets are those of all replicas of a cluster as far as the host knows them. A replica that falls silent takes
//! its sockets out of the directory, but proves nothing of them: calls in flight to them stay in doubt until there is
//! news of the socket (it is proven gone, or has the method again), its answer, or the deadline. While the link to the
//! other replicas is down, sockets of this one are offered alone.
//!
//! Every handler first does what was due at `now`, so a machine that is woken late behaves as one that was woken in
//! time. A `now` before an earlier one counts as that one: threads that read the clock before they took the lock may
//! come out of order.
//!
//! # Invariants
//!
//! - **one-answer**: every call that was taken on ends with exactly one `Answer`, or one `Forget` if its caller left.
//! - **in-time**: no call is open after its deadline, which is its timeout after its arrival and, once it is sent, its timeout
//!   after that; no policy moves it.
//! - **sent-once**: a request is emitted at most once, whatever becomes of its target.
//! - **no-invented-success**: a `Result` is answered only with what a daemon answered to that call's request, or handed in
//!   for it: one of the same user, of a request that was sent to a daemon that may.
//! - **positive-evidence**: `TargetDisconnected` is answered only when the target has left the method's room, or its
//!   replica fell silent, or it came back without the request, after that was sent, and `presence` gave the call up. Proof that a target is gone is
//!   never taken back by less.
//! - **unreachable-is-said**: `Unreachable` is answered only while the link to the other replicas is down, to a call
//!   that nobody on this one could take, or after the host said that the call's answer is lost.
//! - **no-waiting-while-served**: no call waits for a method that somebody has registered, unless only at replicas that
//!   shut down.
//! - **one-timer**: every open call has exactly one timer; a settled call has no timer, question or entry anywhere.
//! - **in-flight**: a socket's calls in flight are those emitted to it and not ended, whether it is still there or not.
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

/// How much a switchboard holds, for gauges and for the proof that nothing is left behind.
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
    /// A switchboard without sockets and calls.
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
