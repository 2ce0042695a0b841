//! Carries out what the call machine says, outside its lock.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use pointwork_core::{
    Answer, AskId, CallId, Time,
    decision::{Absence, Call, Candidate, Doubt},
};
use socketioxide::{AckError, extract::SocketRef};

use super::{Rpc, held::Held, shard::State};
use crate::{
    deliver::undelivered,
    wire::{Args, RpcRequest},
};

/// A command with the handles that its ids stand for.
pub(super) enum Deed {
    AskTarget { call: CallId, ask: AskId, key: u64, input: Call, candidates: Vec<Candidate> },
    AskGrace { call: CallId, ask: AskId, key: u64, input: Call, absence: Absence },
    AskPresence { call: CallId, ask: AskId, key: u64, input: Call, doubt: Doubt },
    Emit { call: CallId, socket: Option<SocketRef>, method: Arc<str>, params: Option<rmpv::Value>, left: Duration },
    Answer { held: Held, answer: Answer<Option<rmpv::Value>> },
    Forget { held: Held },
    WarnSeveral { user: Arc<str>, method: Arc<str>, count: usize },
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

    fn carry_out(self: &Arc<Self>, index: usize, deed: Deed) -> Vec<Deed> {
        let shard = &self.shards[index];
        match deed {
            Deed::AskTarget { call, ask, key, input, candidates } => {
                let choice = self.policies.choose(key, &input, &candidates);
                shard.step(self.now(), |state, now| state.switchboard.handle_choice(call, ask, choice, now)).1
            }
            Deed::AskGrace { call, ask, key, input, absence } => {
                let wait_ms = self.policies.wait(key, &input, &absence);
                shard.step(self.now(), |state, now| state.switchboard.handle_wait(call, ask, wait_ms, now)).1
            }
            Deed::AskPresence { call, ask, key, input, doubt } => {
                let verdict = self.policies.judge(key, &input, &doubt);
                shard.step(self.now(), |state, now| state.switchboard.handle_judgement(call, ask, verdict, now)).1
            }
            Deed::Emit { call, socket, method, params, left } => {
                let request = RpcRequest { method: &method, params };
                if socket.is_some_and(|socket| self.request(index, call, &socket, &request, left)) {
                    return Vec::new();
                }
                shard.step(self.now(), |state, now| state.switchboard.handle_unanswerable(call, now)).1
            }
            Deed::Answer { held, answer } => {
                held.answer(answer);
                Vec::new()
            }
            Deed::Forget { held } => {
                held.forget();
                Vec::new()
            }
            Deed::WarnSeveral { user, method, count } => {
                tracing::warn!(?user, ?method, count, "several sockets registered one method");
                Vec::new()
            }
        }
    }

    /// Sends the request to the daemon and has its answer awaited; false when it cannot be sent.
    fn request(
        self: &Arc<Self>,
        index: usize,
        call: CallId,
        socket: &SocketRef,
        request: &RpcRequest<'_>,
        left: Duration,
    ) -> bool {
        let answer = match socket.timeout(left).emit_with_ack::<_, Args>("rpc-request", request) {
            Ok(answer) => answer,
            Err(error) => {
                tracing::debug!(socket = %socket.id, %error, "an rpc-request could not be sent");
                undelivered(socket, &error);
                return false;
            }
        };
        let rpc = self.clone();
        let waiting = tokio::spawn(async move {
            let answer = answer.await;
            rpc.drive_shard(index, |state, now| match answer.map(Args::fit) {
                Ok(Ok(args)) => state.switchboard.handle_result(call, args.into_first(), now),
                Ok(Err(_)) | Err(AckError::Decode(_)) => state.switchboard.handle_unusable(call, now),
                Err(AckError::Timeout | AckError::Socket(_)) => state.switchboard.handle_unanswerable(call, now),
            });
        });
        let waiting = waiting.abort_handle();
        self.shards[index].step(self.now(), |state, _| match state.held.get_mut(&call) {
            Some(held) => held.answered_by(waiting),
            // Settled meanwhile: by its answer, and the task has ended, or by a disconnect, and nobody needs it.
            None => waiting.abort(),
        });
        true
    }
}
