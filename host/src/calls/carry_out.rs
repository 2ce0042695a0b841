//! Carries out the commands of the call machine, without its lock.

use std::sync::Arc;

use pointwork_core::Time;

use super::{
    action::{CallAction, GraceQuestion},
    daemon_requests::{NotSent, OutgoingRequest},
    shard::Shard,
    state::Calls,
};
use crate::edge::payload::RpcRequest;

impl Calls {
    /// Takes one step in the shard and carries out all that follows from it.
    pub(super) fn drive_shard<T>(self: &Arc<Self>, index: usize, step: impl FnOnce(&mut Shard, Time) -> T) -> T {
        self.shards[index].drive(step, |action| self.carry_out(index, action))
    }

    /// The same for news that a task of the cluster brings; see [`Driver::drive_aside`](crate::driver::Driver::drive_aside).
    pub(super) fn drive_shard_aside<T>(self: &Arc<Self>, index: usize, step: impl FnOnce(&mut Shard, Time) -> T) -> T {
        let calls = self.clone();
        self.shards[index].drive_aside(step, move |action| calls.carry_out(index, action))
    }

    fn carry_out(self: &Arc<Self>, index: usize, action: CallAction) -> Vec<CallAction> {
        let shard = &self.shards[index];
        match action {
            CallAction::AskTarget { call, ask, key, input, candidates } => {
                let choice = self.policies.choose(key, &input, &candidates);
                shard.step(|state, now| state.machine.handle_choice(call, ask, choice, now)).1
            }
            // Servers of another kind announce nothing: they are asked first.
            CallAction::AskGrace { room, question } if self.namespace.foreign_servers() > 0 => {
                self.look_up(index, room, question);
                Vec::new()
            }
            CallAction::AskGrace { question: GraceQuestion { call, ask, key, input, absence }, .. } => {
                let wait_ms = self.policies.wait(key, &input, &absence);
                shard.step(|state, now| state.machine.handle_wait(call, ask, wait_ms, now)).1
            }
            CallAction::AskPresence { call, ask, key, input, doubt } => {
                let verdict = self.policies.judge(key, &input, &doubt);
                shard.step(|state, now| state.machine.handle_judgement(call, ask, verdict, now)).1
            }
            CallAction::Emit { call, target, location, method, params, left, is_named, trace } => {
                let call_id = is_named.then(|| self.name_call(call));
                let request = RpcRequest { method: &method, params, call_id };
                let sent = self.send(OutgoingRequest { index, call, target, request, left, trace }, location);
                let Err(not_sent) = sent else { return Vec::new() };
                let machine = shard.step(|state, now| {
                    state.machine.handle_undelivered(call, now);
                    if matches!(not_sent, NotSent::Unreachable) {
                        state.machine.handle_unreachable(call, now);
                    }
                });
                machine.1
            }
            CallAction::Notify { event } => {
                event.send();
                Vec::new()
            }
            CallAction::Answer { open_call, answer } => {
                self.policies.call_ended(open_call.key(), &open_call.answered(&answer));
                open_call.answer(answer, &self.methods);
                Vec::new()
            }
            CallAction::Forget { open_call } => {
                open_call.forget(&self.methods);
                Vec::new()
            }
            CallAction::WarnSeveral { user, method, count } => {
                tracing::warn!(?user, ?method, count, "several sockets registered one method");
                Vec::new()
            }
        }
    }
}
