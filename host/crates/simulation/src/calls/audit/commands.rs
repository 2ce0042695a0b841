//! Checks each command of a machine against what its process was told and what is true.

use std::time::Duration;

use pointwork_core::calls::UNANSWERABLE;
use pointwork_core::decisions::{self, Departure};
use pointwork_core::time::span_ms;
use pointwork_core::{Answer, AskId, CallCommand, CallId, SocketId, Time};

use super::auditor::CallAuditor;
use super::call_record::{GraceState, SentRequest};
use crate::calls::events::{DaemonResult, Process, connection};

impl CallAuditor {
    pub(crate) fn check_command(&mut self, process: Process, command: &CallCommand<u64>, now: Time) {
        match command {
            CallCommand::AskTarget { call, ask, .. } => {
                self.asked_about(process, *call, *ask, GraceState::None);
                let record = self.views[process].record(*call);
                record.asked_in_a_row += 1;
                let is_sent = record.sent.is_some();
                self.demand(!is_sent, "sent-once", || format!("{call:?} is sent and asked about as if it were not"));
            }
            CallCommand::AskGrace { call, ask, .. } => {
                self.asked_about(process, *call, *ask, GraceState::Asked);
                let view = &mut self.views[process];
                view.record(*call).asked_in_a_row = 0;
                let room = view.record(*call).room;
                let is_unserved = view.is_unserved(room);
                self.demand(is_unserved, "no-waiting-while-served", || {
                    format!("{call:?} finds nobody, and somebody is there")
                });
            }
            CallCommand::AskPresence { call, ask, doubt, .. } => {
                self.asked_about(process, *call, *ask, GraceState::None);
                self.check_doubt(process, *call, doubt, now);
            }
            CallCommand::Emit { call, target, left, resumable } => {
                self.check_emit(process, *call, *target, *left, *resumable, now);
            }
            CallCommand::Held { call, since, left } => self.check_held(process, *call, *since, *left, now),
            CallCommand::Answer { call, answer } => self.check_answer(process, *call, answer, now),
            CallCommand::Forget { call } => {
                let has_left = self.views[process].record(*call).has_caller_left;
                self.demand(has_left, "one-answer", || format!("{call:?} is forgotten, and its caller is there"));
                self.end(process, *call, "forgotten");
            }
            CallCommand::WarnSeveral { .. } => {}
        }
    }

    fn asked_about(&mut self, process: Process, call: CallId, ask: AskId, wait: GraceState) {
        let record = self.views[process].record(call);
        (record.ask, record.wait) = (ask, wait);
        (record.is_chosen, record.is_given_up, record.is_to_be_held) = (false, false, false);
        record.is_rejected = false;
        let is_open = record.is_open;
        self.demand(is_open, "one-answer", || format!("{call:?} has ended and is asked about"));
    }

    fn check_doubt(&mut self, process: Process, call: CallId, doubt: &decisions::Doubt, now: Time) {
        let view = &mut self.views[process];
        let room = view.record(call).room;
        let since = view.record(call).sent.map(|sent| sent.registrations);
        let is_back = since.is_some_and(|registrations| view.is_back(room, registrations));
        let record = view.record(call);
        let expected = record.doubt.as_mut().zip(record.sent).map(|(loss, sent)| {
            (loss.is_back, loss.asked) = (is_back, Some(now));
            let before = loss.before.take().filter(|before| *before == doubt.cause);
            let spans = (span_ms(now.saturating_since(loss.since)), span_ms(now.saturating_since(sent.at)));
            (before.unwrap_or(loss.cause), spans, sent.is_resumable, is_back)
        });
        let said = (doubt.cause, (doubt.since_ms, doubt.sent_ms), doubt.resumable, doubt.returned);
        self.demand(expected == Some(said), "positive-evidence", || {
            format!("the target of {call:?} is doubted by {said:?}, and the process was told {expected:?}")
        });
    }

    fn check_emit(
        &mut self,
        process: Process,
        call: CallId,
        target: SocketId,
        left: Duration,
        resumable: bool,
        now: Time,
    ) {
        let moment = self.moment;
        let view = &mut self.views[process];
        let registrations = view.registrations;
        let record = view.record(call);
        let (room, before, is_open, is_held) = (record.room, record.sent, record.is_open, record.is_held);
        let (caller, is_decided) = (record.caller, record.is_decided());
        let is_whole = left == record.timeout;
        record.sent =
            Some(SentRequest { target, at: now, moment, is_resumable: resumable, is_resumed: false, registrations });
        record.deadline = now + left;
        let is_known = view.has(room, target);
        let seen = view.sockets.get(&target).map(|seen| (seen.is_resumable, seen.replica == 0 || view.is_linked));
        let is_first = is_open && before.is_none() && target != caller;
        self.demand(is_first, "sent-once", || format!("{call:?} is sent again, after its end, or to its caller"));
        self.demand(is_known && seen == Some((resumable, true)), "sent-once", || {
            format!("{call:?} is sent to {target:?}, which is not known to have the method, or out of reach")
        });
        self.demand(is_decided, "obeyed", || format!("nobody has chosen for {call:?}"));
        self.demand(is_whole, "in-time", || format!("the daemon has {left:?} for {call:?}"));
        self.demand(!is_held, "held", || format!("the caller of {call:?} believes that it is held"));
    }

    fn check_held(&mut self, process: Process, call: CallId, since: Duration, left: Duration, now: Time) {
        let record = self.views[process].record(call);
        let (begun, until) = match (&record.doubt, record.sent, record.wait) {
            (Some(loss), Some(_), _) => (Some(loss.since), Some(record.deadline)),
            (None, None, GraceState::Until(until)) => (Some(record.arrived), Some(until)),
            _ => (None, None),
        };
        let is_true = if left.is_zero() {
            record.is_held
        } else {
            let spans = (begun.map(|at| now.saturating_since(at)), until.map(|at| at.saturating_since(now)));
            // A wait may follow another one; a doubt is told once.
            spans == (Some(since), Some(left)) && !(record.is_held && record.sent.is_some())
        };
        let is_open = record.is_open;
        record.is_held = !left.is_zero();
        self.demand(is_open && is_true, "held", || format!("the caller of {call:?} is told {since:?}, {left:?}"));
    }

    fn check_answer(&mut self, process: Process, call: CallId, answer: &Answer<u64>, now: Time) {
        let record = self.views[process].record(call).clone();
        let given = self.calls[record.token].result;
        match answer {
            Answer::Result(value) => {
                self.demand(given == Some(DaemonResult::Value(*value)), "no-invented-success", || {
                    format!("{call:?} is answered by {value}, and its daemon gave {given:?}")
                })
            }
            Answer::Unusable => self.demand(given == Some(DaemonResult::Unusable), "no-invented-success", || {
                format!("{call:?} is answered by something unusable, and its daemon gave {given:?}")
            }),
            Answer::TargetDisconnected => self.judge_disconnected(process, call, now),
            Answer::Unavailable => {
                let is_over = matches!(record.wait, GraceState::Until(until) if until <= now);
                let is_nobody = record.was_unserved && is_over || record.is_rejected;
                self.demand(record.sent.is_none() && is_nobody, "not-available", || {
                    format!(
                        "{call:?} finds nobody: sent {:?}, bare {}, {:?}",
                        record.sent, record.was_unserved, record.wait
                    )
                });
            }
            Answer::SameSocket => {
                let is_own = record.sent.is_none() && self.views[process].has(record.room, record.caller);
                self.demand(record.is_decided(), "obeyed", || format!("nobody has chosen for {call:?}"));
                self.demand(is_own, "sent-once", || format!("{call:?} is said to call its own caller"));
            }
            Answer::Unreachable => {
                let view = &self.views[process];
                let is_beyond = !view.is_linked
                    && !view.is_unserved(record.room)
                    && view.servers(record.room).all(|replica| replica != 0);
                let is_said = if record.sent.is_some() { record.is_said_lost } else { is_beyond };
                self.demand(is_said, "unreachable-is-said", || format!("{call:?} is unreachable for no reason"));
            }
            Answer::TimedOut => {
                let is_hopeless = record.unanswerable.is_some_and(|at| at + UNANSWERABLE <= now);
                self.demand(record.deadline <= now || is_hopeless, "in-time", || {
                    format!("{call:?} timed out at {now:?}, and has until {:?}", record.deadline)
                });
            }
        }
        self.end(process, call, answer.error().unwrap_or("result"));
    }

    fn judge_disconnected(&mut self, process: Process, call: CallId, now: Time) {
        let record = self.views[process].record(call).clone();
        let Some((sent, loss)) = record.sent.zip(record.doubt) else {
            return self.demand(false, "positive-evidence", || format!("nobody has doubted the target of {call:?}"));
        };
        let is_silence = loss.cause == Departure::ReplicaSilent;
        let is_told = record.is_given_up && (!is_silence || self.trusts_silence);
        let is_true = is_silence || self.truth.may_be_gone(connection(sent.target), record.room, sent.moment);
        self.demand(is_told && is_true, "positive-evidence", || {
            format!("{call:?} is disconnected: told {loss:?}, given up {}, true {is_true}", record.is_given_up)
        });
        if let Some(resume) = self.resume.filter(|_| sent.is_resumable && loss.cause.is_loss()) {
            let is_over = loss.asked.is_some_and(|asked| loss.since + resume <= asked && asked <= now);
            self.demand(is_over && !loss.is_back, "time-to-return", || {
                format!("{call:?} could have been handed in: {loss:?}")
            });
        }
    }

    fn end(&mut self, process: Process, call: CallId, how: &'static str) {
        let view = &mut self.views[process];
        let record = view.record(call);
        let was_open = std::mem::replace(&mut record.is_open, false);
        view.open.retain(|open| *open != call);
        self.demand(was_open, "one-answer", || format!("{call:?} has ended already, and now again: {how}"));
        self.ends.count(how);
    }
}
