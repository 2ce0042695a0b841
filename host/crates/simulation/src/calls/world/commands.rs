//! Carries out the commands of a call machine in order, as the host does.

use pointwork_core::{AskId, CallCommand, CallId};

use super::state::CallWorld;
use crate::calls::events::{CallEvent, CallRef, Process, RuleAnswer, ServerPacket, connection};
use crate::calls::replica::Origin;
use crate::trace::trace;

impl CallWorld<'_> {
    /// Carries out all commands of a machine, and checks the invariants.
    pub(super) fn run_commands(&mut self, process: Process) {
        let now = self.replicas[process].clock.at(self.now);
        while let Some(command) = self.replicas[process].machine.next_command() {
            self.trace_command(process, &command);
            self.audit.check_command(process, &command, now);
            if self.audit.broken.is_some() {
                return;
            }
            self.execute(process, command);
        }
        self.audit.check_steady(process, &self.replicas[process].machine, now);
        self.arm(process);
    }

    fn execute(&mut self, process: Process, command: CallCommand<u64>) {
        match command {
            CallCommand::AskTarget { call, ask, user, input, candidates } => {
                let choice = self.rules.choose(self.rule_moment(process, call, ask), &user, &input, &candidates);
                self.rule_answered(process, call, ask, RuleAnswer::Choice(choice));
            }
            CallCommand::AskGrace { call, ask, user, input, absence } => {
                let wait_ms = self.rules.wait(self.rule_moment(process, call, ask), &user, &input, &absence);
                self.rule_answered(process, call, ask, RuleAnswer::Wait(wait_ms));
            }
            CallCommand::AskPresence { call, ask, user, input, doubt } => {
                let verdict = self.rules.judge(self.rule_moment(process, call, ask), &user, &input, &doubt);
                self.rule_answered(process, call, ask, RuleAnswer::Judgement(verdict));
            }
            CallCommand::Emit { call, target, left, resumable } => {
                let token = self.replicas[process].calls[call.0 as usize - 1];
                self.calls[token].may_be_handed_in = resumable;
                self.calls[token].sent = Some(self.now);
                let called = resumable.then_some(CallRef { process, call });
                let target_connection = connection(target);
                let sent = if self.connections[target_connection].process == process {
                    self.send_here(process, target_connection, token, called, Origin::Here(call))
                } else {
                    self.send_there(process, call, target, called, left)
                };
                if !sent {
                    let now = self.replicas[process].clock.at(self.now);
                    trace!(self, "r{process}", "the request of call {} cannot be sent", call.0);
                    self.audit.request_unanswerable(process, call, true, now);
                    self.replicas[process].machine.handle_undelivered(call, now);
                }
            }
            CallCommand::Answer { call, answer } => {
                let token = self.forget_call(process, call);
                self.measure_end(token, answer.error());
                self.send_down(self.calls[token].caller, ServerPacket::Answer { token });
            }
            CallCommand::Forget { call } => _ = self.forget_call(process, call),
            CallCommand::Held { .. } | CallCommand::WarnSeveral { .. } => {}
        }
    }

    /// Drops the requests and acknowledgements of a call. Returns its token.
    fn forget_call(&mut self, process: Process, call: CallId) -> usize {
        let replica = &mut self.replicas[process];
        replica.requests.retain(|open| open.call != call);
        replica.awaited.retain(|awaited| awaited.origin != Origin::Here(call));
        let token = replica.calls[call.0 as usize - 1];
        self.calls[token].may_be_handed_in = false;
        token
    }

    /// Gives the machine the answer of a policy at once, late, or twice.
    fn rule_answered(&mut self, process: Process, call: CallId, ask: AskId, verdict: RuleAnswer) {
        if self.scenario.is_some() || !self.chance.once_in(5) {
            return self.deliver_answer(process, call, ask, verdict);
        }
        self.faults.count("late verdict");
        self.deliver_answer_later(process, call, ask, verdict);
        match self.chance.below(6) {
            0 | 1 => self.deliver_answer(process, call, ask, verdict),
            2 => self.deliver_answer_later(process, call, ask, verdict),
            _ => return,
        }
        self.faults.count("doubled verdict");
    }

    fn deliver_answer_later(&mut self, process: Process, call: CallId, ask: AskId, verdict: RuleAnswer) {
        let at = self.now + self.chance.weighted(&[(8, 0, 20), (3, 20, 900), (1, 900, 5_000)]);
        self.agenda.enter(at, CallEvent::Verdict { process, call, ask, verdict });
    }

    /// Gives the machine a late answer. The call may have changed since the question.
    pub(super) fn late_answer(&mut self, process: Process, call: CallId, ask: AskId, verdict: RuleAnswer) {
        self.catch_up(process);
        trace!(self, "r{process}", "a late verdict on call {}, question {}: {verdict:?}", call.0, ask.0);
        self.deliver_answer(process, call, ask, verdict);
        self.run_commands(process);
    }

    fn deliver_answer(&mut self, process: Process, call: CallId, ask: AskId, verdict: RuleAnswer) {
        let replica = &mut self.replicas[process];
        let now = replica.clock.at(self.now);
        match verdict {
            RuleAnswer::Choice(choice) => {
                self.audit.target_answered(process, call, ask, choice);
                replica.machine.handle_choice(call, ask, choice, now);
            }
            RuleAnswer::Wait(wait_ms) => {
                self.audit.grace_answered(process, call, ask, wait_ms, now);
                replica.machine.handle_wait(call, ask, wait_ms, now);
            }
            RuleAnswer::Judgement(verdict) => {
                self.audit.presence_answered(process, call, ask, verdict);
                replica.machine.handle_judgement(call, ask, verdict, now);
            }
        }
    }

    fn trace_command(&mut self, process: Process, command: &CallCommand<u64>) {
        if !self.trace.is_on() {
            return;
        }
        let what = match command {
            CallCommand::AskTarget { call, ask, candidates, .. } => {
                format!("call {}: target is asked about {} (question {})", call.0, candidates.len(), ask.0)
            }
            CallCommand::AskGrace { call, ask, absence, .. } => {
                format!("call {}: grace is asked, {:?} (question {})", call.0, absence.cause, ask.0)
            }
            CallCommand::AskPresence { call, ask, doubt, .. } => {
                let (cause, since, back) = (doubt.cause, doubt.since_ms, doubt.returned);
                format!(
                    "call {}: presence is asked, {cause:?} for {since} ms, back {back} (question {})",
                    call.0, ask.0
                )
            }
            CallCommand::Emit { call, target, resumable, .. } => {
                format!("call {} is sent to socket {}, resumable {resumable}", call.0, target.0)
            }
            CallCommand::Held { call, left, .. } => format!("call {} is held for {} ms more", call.0, left.as_millis()),
            CallCommand::Answer { call, answer } => format!("call {} ends: {answer:?}", call.0),
            CallCommand::Forget { call } => format!("call {} is forgotten", call.0),
            CallCommand::WarnSeveral { method, count, .. } => format!("{count} sockets have {method}"),
        };
        trace!(self, "r{process}", "  {what}");
    }
}
