//! Holds what the auditor knows, and takes the reports of calls.

use std::time::Duration;

use pointwork_core::decisions::{Choice, Departure, Verdict};
use pointwork_core::{AskId, CallId, Time};

use super::call_record::{CallRecord, GraceState};
use super::process_view::ProcessView;
use super::truth::{GroundTruth, ProcessTruth};
use crate::calls::events::{CallToken, Connection, DaemonResult, Process};
use crate::counts::Counts;
use crate::time::WorldTime;
use crate::violation::Violation;

#[derive(Default)]
pub(crate) struct CallAuditor {
    pub(super) views: Vec<ProcessView>,
    pub(super) truth: GroundTruth,
    pub(super) calls: Vec<CallFacts>,
    /// How long a daemon that may hand in results has to come back.
    pub(super) resume: Option<Duration>,
    /// A call may be given up because the replica of its target is silent.
    pub(super) trusts_silence: bool,
    /// The time of the world.
    pub(crate) moment: WorldTime,
    /// The first invariant that did not hold.
    pub(crate) broken: Option<Violation>,
    /// How calls ended.
    pub(crate) ends: Counts,
}

/// What happened to a call outside the machines.
#[derive(Default)]
pub(super) struct CallFacts {
    pub(super) deliveries: u32,
    pub(super) result: Option<DaemonResult>,
    pub(super) answers: u32,
}

impl CallAuditor {
    pub(crate) fn new(resume_ms: Option<u32>, trusts_silence: bool) -> CallAuditor {
        CallAuditor {
            resume: resume_ms.map(|ms| Duration::from_millis(ms.into())),
            trusts_silence,
            ..CallAuditor::default()
        }
    }

    pub(crate) fn process_started(&mut self) {
        self.views.push(ProcessView::default());
        self.truth.processes.push(ProcessTruth::default());
    }

    /// A process has ended. Its open calls get no answer.
    pub(crate) fn process_ended(&mut self, process: Process) {
        self.truth.processes[process].has_ended = true;
        for call in std::mem::take(&mut self.views[process].open) {
            self.views[process].record(call).is_open = false;
            self.ends.count("ended with its process");
        }
    }

    pub(crate) fn call_made(&mut self) -> CallToken {
        self.calls.push(CallFacts::default());
        self.calls.len() - 1
    }

    pub(crate) fn call_taken(&mut self, process: Process, call: CallRecord) {
        let view = &mut self.views[process];
        let id = CallId(view.calls.len() as u64 + 1);
        let is_unserved = view.is_unserved(call.room);
        view.calls.push(CallRecord { was_unserved: is_unserved, ..call });
        view.open.push(id);
    }

    pub(crate) fn grace_answered(&mut self, process: Process, call: CallId, ask: AskId, wait_ms: u32, now: Time) {
        let record = self.views[process].record(call);
        if record.is_open && record.ask == ask && record.wait == GraceState::Asked {
            let until = (now + Duration::from_millis(wait_ms.into())).min(record.deadline);
            record.wait = GraceState::Until(if wait_ms == 0 { now } else { until });
        }
    }

    pub(crate) fn target_answered(&mut self, process: Process, call: CallId, ask: AskId, choice: Choice) {
        let record = self.views[process].record(call);
        let is_heard = record.is_open && record.ask == ask && record.wait == GraceState::None;
        record.is_chosen |= is_heard;
        record.is_rejected |= is_heard && choice == Choice::Reject;
    }

    pub(crate) fn presence_answered(&mut self, process: Process, call: CallId, ask: AskId, verdict: Verdict) {
        let record = self.views[process].record(call);
        if record.is_open && record.ask == ask && record.doubt.is_some() {
            record.is_given_up = verdict == Verdict::Abort;
            record.is_to_be_held |= verdict != Verdict::Abort;
        }
    }

    /// The host says that a request cannot be answered, or with `undelivered` that it did not reach its target.
    pub(crate) fn request_unanswerable(&mut self, process: Process, call: CallId, undelivered: bool, now: Time) {
        let record = self.views[process].record(call);
        let Some(sent) = record.sent.as_mut().filter(|sent| !sent.is_resumed) else { return };
        if undelivered {
            sent.is_resumable = false;
        }
        if record.doubt.is_none() {
            record.unanswerable.get_or_insert(now);
        }
    }

    pub(crate) fn request_lost(&mut self, process: Process, call: CallId) {
        let record = self.views[process].record(call);
        let Some(sent) = record.sent.filter(|_| record.is_open) else { return };
        let is_proven_gone = record.doubt.is_some_and(|loss| loss.cause.is_proof());
        // What may still be handed in does not come by that link.
        record.is_said_lost |= !(sent.is_resumed || sent.is_resumable && is_proven_gone);
    }

    /// A process knows that a peer is gone. Its calls in flight there must be in doubt for more than mere silence.
    pub(crate) fn peer_lost(&mut self, process: Process, peer: Process) {
        let (view, truth) = (&self.views[process], &self.truth);
        let is_overlooked = |call: &&CallId| {
            let record = &view.calls[call.0 as usize - 1];
            // One that was resumed is at a socket which nobody may have told of.
            let its = record.sent.filter(|sent| !sent.is_resumed && truth.process_of(sent.target) == Some(peer));
            its.is_some() && record.doubt.is_none_or(|loss| loss.cause == Departure::ReplicaSilent)
        };
        let overlooked = view.open.iter().find(is_overlooked).copied();
        self.demand(overlooked.is_none(), "obeyed", || format!("r{peer} is gone, and {overlooked:?} is not in doubt"));
    }

    pub(crate) fn request_delivered(&mut self, token: CallToken) {
        self.calls[token].deliveries += 1;
        let count = self.calls[token].deliveries;
        self.demand(count == 1, "sent-once", || format!("a daemon got the request of call #{token} {count} times"));
    }

    pub(crate) fn daemon_finished(&mut self, token: CallToken, given: DaemonResult) {
        self.calls[token].result = Some(given);
    }

    /// A caller hears that its call ended, or was refused.
    pub(crate) fn caller_answered(&mut self, token: CallToken) {
        self.calls[token].answers += 1;
        let count = self.calls[token].answers;
        self.demand(count == 1, "one-answer", || format!("the caller of #{token} is told its end {count} times"));
    }

    /// Whether a result that is handed in must be taken.
    pub(crate) fn takes_hand_in(&mut self, process: Process, user: usize, call: CallId) -> bool {
        let view = &mut self.views[process];
        let Some(record) = view.calls.get(call.0 as usize - 1) else { return false };
        record.is_open && record.room.user() == user && record.sent.is_some_and(|sent| sent.is_resumable)
    }

    pub(crate) fn demand(&mut self, holds: bool, invariant: &'static str, what: impl FnOnce() -> String) {
        if !holds && self.broken.is_none() {
            self.broken = Some(Violation { invariant, what: what() });
        }
    }

    pub(crate) fn connection_made(&mut self, process: Process) -> Connection {
        self.truth.connection_made(process)
    }
}
