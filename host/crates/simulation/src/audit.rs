//! The reference model: from what truly happened in the world and what each process was told of it, which answers each call
//! may get, and when. It shares nothing with the machines and predicts nothing; it judges.
//!
//! # Invariants
//!
//! Asserted after every event:
//! - **one-answer**: every call is answered exactly once, or forgotten when its caller left; its caller hears of it once.
//! - **in-time**: no call is open after its deadline by its process's clock, and none has timed out before it.
//! - **sent-once**: a request is sent once at most, to a daemon that is known to have the method, and no daemon gets it
//!   twice.
//! - **no-invented-success**: a result is what the daemon gave to that very request.
//! - **positive-evidence**: `RPC target disconnected` only when the process was told so after the request was sent, other
//!   than by mere silence unless the rule trusts in it, and when the target has truly left or taken the method back, or its process has ended or was cut off since.
//! - **time-to-return**: nor before a daemon that may hand in its result had the time to come back, nor once it is back.
//! - **not-available**: `RPC method not available` only when nobody was known there at some moment of the wait, and not
//!   before its end; or when `target` said that nobody is good enough.
//! - **unreachable-is-said**: `RPC target unreachable` only while the link is down and only others have the method, or
//!   after the host said that the answer is lost.
//! - **handed-in**: a result that is handed in is taken if, and only if, the call is in flight, of that user, and was
//!   sent as resumable.
//! - **held**: callers are told that they wait when they do, with true spans, and once that it is over.
//! - **true-news**: what a process is told of others' sockets is true.
//! - **no-waiting-while-served**: no call waits for a method that somebody within the cluster is known to have.
//! - **obeyed**: whenever more is known of a target, `presence` is asked; and what a rule answers to the last question about
//!   a call is done at once.
//! - **one-timer**: an open call has one timer, and a process without open calls has none, nor anything else of calls.
//!
//! When everything has healed:
//! - **in-step**: every process knows exactly what all others' sockets have registered.
//! - **nothing-left**: no call, request, acknowledgement, socket or timer is left of what has ended.

mod call;
mod commands;
mod standing;
mod truth;
mod view;

use std::fmt;
use std::time::Duration;

use pointwork_core::decision::{Choice, Departure, Verdict};
use pointwork_core::{AskId, CallId, SocketId, Time};

use self::call::{CallRecord, Wait};
use self::truth::Truth;
use self::view::View;
use crate::agenda::Moment;
use crate::event::{Connection, Given, Process, Token};
use crate::room::Room;
use crate::tally::Tally;

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Its name.
    pub invariant: &'static str,
    /// What happened instead.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

/// Hears of everything, and judges.
pub(crate) struct Auditor {
    views: Vec<View>,
    truth: Truth,
    calls: Vec<Known>,
    /// How long a daemon that may hand in has to come back.
    resume: Option<Duration>,
    /// A call may be given up because nothing is heard of a replica.
    trusts_silence: bool,
    /// What time it is in the world.
    pub(crate) moment: Moment,
    /// The first invariant that did not hold.
    pub(crate) broken: Option<Violation>,
    /// How calls ended.
    pub(crate) ends: Tally,
}

/// What became of a call in the world outside the machines.
#[derive(Default)]
struct Known {
    delivered: u32,
    given: Option<Given>,
    told: u32,
}

impl Auditor {
    pub(crate) fn new(resume_ms: Option<u32>, trusts_silence: bool) -> Auditor {
        Auditor {
            views: Vec::new(),
            truth: Truth::default(),
            calls: Vec::new(),
            resume: resume_ms.map(|ms| Duration::from_millis(ms.into())),
            trusts_silence,
            moment: Moment::ZERO,
            broken: None,
            ends: Tally::default(),
        }
    }

    /// A process has started.
    pub(crate) fn started(&mut self) {
        self.views.push(View::default());
        self.truth.processes.push(truth::ProcessTruth::default());
    }

    /// A process has ended. What it had not answered will not be.
    pub(crate) fn ended(&mut self, process: Process) {
        self.truth.processes[process].has_ended = true;
        for call in std::mem::take(&mut self.views[process].open) {
            self.views[process].record(call).is_open = false;
            self.ends.count("ended with its process");
        }
    }

    /// A client makes a call.
    pub(crate) fn asked(&mut self) -> Token {
        self.calls.push(Known::default());
        self.calls.len() - 1
    }

    /// A machine took a call on.
    pub(crate) fn called(&mut self, process: Process, call: CallRecord, now: Time) {
        let view = &mut self.views[process];
        let id = CallId(view.calls.len() as u64 + 1);
        let is_bare = view.is_bare(call.room);
        view.calls.push(CallRecord { arrived: now, deadline: now + call.timeout, was_bare: is_bare, ..call });
        view.open.push(id);
    }

    /// The host brings how long a call is held.
    pub(crate) fn waits(&mut self, process: Process, call: CallId, ask: AskId, wait_ms: u32, now: Time) {
        let record = self.views[process].record(call);
        if record.is_open && record.ask == ask && record.wait == Wait::Asked {
            let until = (now + Duration::from_millis(wait_ms.into())).min(record.deadline);
            record.wait = Wait::Until(if wait_ms == 0 { now } else { until });
        }
    }

    /// The host brings who gets a call.
    pub(crate) fn chosen(&mut self, process: Process, call: CallId, ask: AskId, choice: Choice) {
        let record = self.views[process].record(call);
        let is_heard = record.is_open && record.ask == ask && record.wait == Wait::None;
        record.is_chosen |= is_heard;
        record.is_rejected |= is_heard && choice == Choice::Reject;
    }

    /// The host brings what becomes of a call whose target is in doubt.
    pub(crate) fn judged(&mut self, process: Process, call: CallId, ask: AskId, verdict: Verdict) {
        let record = self.views[process].record(call);
        if record.is_open && record.ask == ask && record.doubt.is_some() {
            record.is_given_up = verdict == Verdict::Abort;
            record.is_to_be_held |= verdict != Verdict::Abort;
        }
    }

    /// The host says that a request cannot be answered; `undelivered`: that it did not get there at all.
    pub(crate) fn unanswerable(&mut self, process: Process, call: CallId, undelivered: bool, now: Time) {
        let record = self.views[process].record(call);
        let Some(sent) = record.sent.as_mut().filter(|sent| !sent.is_resumed) else { return };
        if undelivered {
            sent.is_resumable = false;
        }
        if record.doubt.is_none() {
            record.unanswerable.get_or_insert(now);
        }
    }

    /// The host says that a request or its answer is lost.
    pub(crate) fn lost(&mut self, process: Process, call: CallId) {
        let record = self.views[process].record(call);
        let Some(sent) = record.sent.filter(|_| record.is_open) else { return };
        let is_proven_gone = record.doubt.is_some_and(|told| told.cause.is_proof());
        // What may still be handed in does not come by that link.
        record.is_said_lost |= !(sent.is_resumed || sent.is_resumable && is_proven_gone);
    }

    /// A process knows that a peer is gone: whatever is in flight there is in doubt, and not by mere silence.
    pub(crate) fn lost_peer(&mut self, process: Process, peer: Process) {
        let (view, truth) = (&self.views[process], &self.truth);
        let is_overlooked = |call: &&CallId| {
            let record = &view.calls[call.0 as usize - 1];
            // One that was resumed is at a socket which nobody may have told of.
            let its = record.sent.filter(|sent| !sent.is_resumed && truth.process_of(sent.target) == Some(peer));
            its.is_some() && record.doubt.is_none_or(|told| told.cause == Departure::ReplicaSilent)
        };
        let overlooked = view.open.iter().find(is_overlooked).copied();
        self.demand(overlooked.is_none(), "obeyed", || format!("r{peer} is gone, and {overlooked:?} is not in doubt"));
    }

    /// A daemon gets a request.
    pub(crate) fn delivered(&mut self, token: Token) {
        self.calls[token].delivered += 1;
        let count = self.calls[token].delivered;
        self.demand(count == 1, "sent-once", || format!("a daemon got the request of call #{token} {count} times"));
    }

    /// A daemon has done what a request asked for.
    pub(crate) fn given(&mut self, token: Token, given: Given) {
        self.calls[token].given = Some(given);
    }

    /// A caller hears how its call ended, or that it was not taken on.
    pub(crate) fn told(&mut self, token: Token) {
        self.calls[token].told += 1;
        let count = self.calls[token].told;
        self.demand(count == 1, "one-answer", || format!("the caller of #{token} is told its end {count} times"));
    }

    /// A result is handed in. Whether it must be taken.
    pub(crate) fn takes(&mut self, process: Process, user: usize, call: CallId) -> bool {
        let view = &mut self.views[process];
        let Some(record) = view.calls.get(call.0 as usize - 1) else { return false };
        record.is_open && record.room.user() == user && record.sent.is_some_and(|sent| sent.is_resumable)
    }

    pub(crate) fn demand(&mut self, holds: bool, invariant: &'static str, what: impl FnOnce() -> String) {
        if !holds && self.broken.is_none() {
            self.broken = Some(Violation { invariant, what: what() });
        }
    }

    /// A call's record before it is taken on.
    pub(crate) fn record(token: Token, caller: SocketId, room: Room, timeout: Duration) -> CallRecord {
        CallRecord::new(token, caller, room, timeout)
    }

    /// A connection was made to a process.
    pub(crate) fn connection_made(&mut self, process: Process) -> Connection {
        self.truth.connection_made(process)
    }
}
