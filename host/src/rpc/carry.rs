//! Carries out what the call machine says, outside its lock.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use pointwork_core::{
    Answer, AskId, CallId, RpcRoom, SocketId, Time,
    decision::{Call, Candidate, Doubt},
};

use super::{
    Rpc,
    held::{Held, Notice},
    lookup::GraceQuestion,
    request::{NotSent, Sending},
    shard::{Seat, State},
};
use crate::{telemetry::TraceContext, wire::RpcRequest};

/// A command with the handles that its ids stand for.
pub(super) enum Deed {
    AskTarget {
        call: CallId,
        ask: AskId,
        key: u64,
        input: Call,
        candidates: Vec<Candidate>,
    },
    AskGrace {
        room: RpcRoom,
        question: GraceQuestion,
    },
    AskPresence {
        call: CallId,
        ask: AskId,
        key: u64,
        input: Call,
        doubt: Doubt,
    },
    Emit {
        call: CallId,
        target: SocketId,
        seat: Option<Seat>,
        method: Arc<str>,
        params: Option<rmpv::Value>,
        left: Duration,
        /// The daemon is told what to name the call by.
        is_named: bool,
        /// Of a call that is traced.
        trace: Option<TraceContext>,
    },
    Notify {
        notice: Notice,
    },
    Answer {
        held: Held,
        answer: Answer<Option<rmpv::Value>>,
    },
    Forget {
        held: Held,
    },
    WarnSeveral {
        user: Arc<str>,
        method: Arc<str>,
        count: usize,
    },
}

impl Rpc {
    /// Takes one step in the shard and carries out all that follows from it; a verdict that a deed brings is the next step.
    pub(super) fn drive_shard<T>(self: &Arc<Self>, index: usize, step: impl FnOnce(&mut State, Time) -> T) -> T {
        let (result, deeds) = self.shards[index].step(self.now(), step);
        let mut deeds = VecDeque::from(deeds);
        while let Some(deed) = deeds.pop_front() {
            deeds.extend(self.carry_out(index, deed));
        }
        result
    }

    /// The same for what others brought, which comes from tasks that must not be held up: what follows is carried out by a task of its
    /// own, in order, and others have their turn in between.
    pub(super) fn drive_shard_aside<T>(self: &Arc<Self>, index: usize, step: impl FnOnce(&mut State, Time) -> T) -> T {
        let (result, deeds) = self.shards[index].step(self.now(), step);
        if !deeds.is_empty() {
            let (rpc, mut deeds) = (self.clone(), VecDeque::from(deeds));
            tokio::spawn(async move {
                while let Some(deed) = deeds.pop_front() {
                    deeds.extend(rpc.carry_out(index, deed));
                    tokio::task::yield_now().await;
                }
            });
        }
        result
    }

    fn carry_out(self: &Arc<Self>, index: usize, deed: Deed) -> Vec<Deed> {
        let shard = &self.shards[index];
        match deed {
            Deed::AskTarget { call, ask, key, input, candidates } => {
                let choice = self.policies.choose(key, &input, &candidates);
                shard.step(self.now(), |state, now| state.switchboard.handle_choice(call, ask, choice, now)).1
            }
            // Servers of another kind announce nothing: they are asked first.
            Deed::AskGrace { room, question } if self.namespace.foreign_servers() > 0 => {
                self.look_up(index, room, question);
                Vec::new()
            }
            Deed::AskGrace { question: GraceQuestion { call, ask, key, input, absence }, .. } => {
                let wait_ms = self.policies.wait(key, &input, &absence);
                shard.step(self.now(), |state, now| state.switchboard.handle_wait(call, ask, wait_ms, now)).1
            }
            Deed::AskPresence { call, ask, key, input, doubt } => {
                let verdict = self.policies.judge(key, &input, &doubt);
                shard.step(self.now(), |state, now| state.switchboard.handle_judgement(call, ask, verdict, now)).1
            }
            Deed::Emit { call, target, seat, method, params, left, is_named, trace } => {
                let call_id = is_named.then(|| self.name_call(call));
                let request = RpcRequest { method: &method, params, call_id };
                let sent = self.send(Sending { index, call, target, request, left, trace }, seat);
                let Err(not_sent) = sent else { return Vec::new() };
                let machine = shard.step(self.now(), |state, now| {
                    state.switchboard.handle_undelivered(call, now);
                    if matches!(not_sent, NotSent::Unreachable) {
                        state.switchboard.handle_unreachable(call, now);
                    }
                });
                machine.1
            }
            Deed::Notify { notice } => {
                notice.give();
                Vec::new()
            }
            Deed::Answer { held, answer } => {
                self.policies.answered(held.key(), &held.answered(&answer));
                held.answer(answer, &self.methods);
                Vec::new()
            }
            Deed::Forget { held } => {
                held.forget(&self.methods);
                Vec::new()
            }
            Deed::WarnSeveral { user, method, count } => {
                tracing::warn!(?user, ?method, count, "several sockets registered one method");
                Vec::new()
            }
        }
    }
}
