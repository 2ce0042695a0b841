//! One shard: the call machine of its users, and the sockets and calls that the machine's ids stand for.

use std::collections::HashMap;

use pointwork_core::{CallCommand, CallId, CallMachine, CallSettings, RpcRoom, SocketId, Time};

use super::{
    action::{CallAction, GraceQuestion},
    call::{location::SocketLocation, open_call::OpenCall},
};
use crate::driver::{Clock, Driver, Machine};

/// What a shard's lock guards. Both maps hold exactly the ids that the machine knows.
pub(super) struct Shard {
    pub(super) machine: CallMachine<Option<rmpv::Value>>,
    pub(super) sockets: HashMap<SocketId, SocketLocation>,
    pub(super) open_calls: HashMap<CallId, OpenCall>,
}

/// The driver of a shard.
pub(super) fn new(limits: CallSettings, clock: Clock) -> Driver<Shard> {
    let machine = CallMachine::new(limits);
    Driver::new(Shard { machine, sockets: HashMap::new(), open_calls: HashMap::new() }, clock)
}

impl Machine for Shard {
    type Command = CallAction;

    fn next_command(&mut self) -> Option<CallAction> {
        // A command whose call has gone asks for nothing.
        loop {
            let command = self.machine.next_command()?;
            if let Some(action) = action(self, command) {
                return Some(action);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.machine.poll_timeout()
    }
}

/// Adds the handles that a command's ids stand for. `None` if the call has gone, and so asks for nothing.
fn action(state: &mut Shard, command: CallCommand<Option<rmpv::Value>>) -> Option<CallAction> {
    Some(match command {
        CallCommand::AskTarget { call, ask, input, candidates, .. } => {
            CallAction::AskTarget { call, ask, key: state.open_calls.get(&call)?.key(), input, candidates }
        }
        CallCommand::AskGrace { call, ask, user, input, absence } => {
            let room = RpcRoom { user, method: input.method.clone() };
            let key = state.open_calls.get(&call)?.key();
            CallAction::AskGrace { room, question: GraceQuestion { call, ask, key, input, absence } }
        }
        CallCommand::AskPresence { call, ask, input, doubt, .. } => {
            CallAction::AskPresence { call, ask, key: state.open_calls.get(&call)?.key(), input, doubt }
        }
        CallCommand::Emit { call, target, left, resumable } => {
            let location = state.sockets.get(&target).cloned();
            let open_call = state.open_calls.get_mut(&call)?;
            let (method, params) = open_call.request(location.as_ref());
            CallAction::Emit {
                call,
                target,
                location,
                method,
                params,
                left,
                is_named: resumable,
                trace: open_call.trace(),
            }
        }
        CallCommand::Held { call, since, left } => {
            CallAction::Notify { event: state.open_calls.get(&call)?.waiting_event(since, left)? }
        }
        CallCommand::Answer { call, answer } => {
            CallAction::Answer { open_call: state.open_calls.remove(&call)?, answer }
        }
        CallCommand::Forget { call } => CallAction::Forget { open_call: state.open_calls.remove(&call)? },
        CallCommand::WarnSeveral { user, method, count } => CallAction::WarnSeveral { user, method, count },
    })
}
