//! One shard: the call machine of its users, and the handles that the machine's ids stand for.

use std::collections::HashMap;

use pointwork_core::{CallCommand, CallId, CallMachine, CallSettings, RpcRoom, SocketId, Time};

use super::{
    action::{CallAction, GraceQuestion},
    call::{location::SocketLocation, open_call::OpenCall},
};
use crate::driver::{Clock, Driver, Machine};

/// What a shard's lock guards. Both maps hold exactly what the machine knows of.
pub(super) struct Shard {
    pub(super) switchboard: CallMachine<Option<rmpv::Value>>,
    pub(super) sockets: HashMap<SocketId, SocketLocation>,
    pub(super) held: HashMap<CallId, OpenCall>,
}

/// The driver of a shard.
pub(super) fn new(limits: CallSettings, clock: Clock) -> Driver<Shard> {
    let switchboard = CallMachine::new(limits);
    Driver::new(Shard { switchboard, sockets: HashMap::new(), held: HashMap::new() }, clock)
}

impl Machine for Shard {
    type Command = CallAction;

    fn next_command(&mut self) -> Option<CallAction> {
        // A command whose call has gone asks for nothing.
        loop {
            let command = self.switchboard.next_command()?;
            if let Some(deed) = deed(self, command) {
                return Some(deed);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.switchboard.poll_timeout()
    }
}

/// Puts the handles to a command's ids, while the lock is held.
fn deed(state: &mut Shard, command: CallCommand<Option<rmpv::Value>>) -> Option<CallAction> {
    Some(match command {
        CallCommand::AskTarget { call, ask, input, candidates, .. } => {
            CallAction::AskTarget { call, ask, key: state.held.get(&call)?.key(), input, candidates }
        }
        CallCommand::AskGrace { call, ask, user, input, absence } => {
            let room = RpcRoom { user, method: input.method.clone() };
            let key = state.held.get(&call)?.key();
            CallAction::AskGrace { room, question: GraceQuestion { call, ask, key, input, absence } }
        }
        CallCommand::AskPresence { call, ask, input, doubt, .. } => {
            CallAction::AskPresence { call, ask, key: state.held.get(&call)?.key(), input, doubt }
        }
        CallCommand::Emit { call, target, left, resumable } => {
            let seat = state.sockets.get(&target).cloned();
            let held = state.held.get_mut(&call)?;
            let (method, params) = held.request(seat.as_ref());
            CallAction::Emit { call, target, seat, method, params, left, is_named: resumable, trace: held.trace() }
        }
        CallCommand::Held { call, since, left } => {
            CallAction::Notify { notice: state.held.get(&call)?.notice(since, left)? }
        }
        CallCommand::Answer { call, answer } => CallAction::Answer { held: state.held.remove(&call)?, answer },
        CallCommand::Forget { call } => CallAction::Forget { held: state.held.remove(&call)? },
        CallCommand::WarnSeveral { user, method, count } => CallAction::WarnSeveral { user, method, count },
    })
}
