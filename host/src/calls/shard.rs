//! One shard: the call machine of its users, and the handles that the machine's ids stand for.

use std::collections::HashMap;

use pointwork_core::{CallId, Command, RpcRoom, Settings, SocketId, Switchboard, Time};

use super::{
    action::{CallAction, GraceQuestion},
    call::{location::SocketLocation, open_call::OpenCall},
};
use crate::driver::{Clock, Driver, Machine};

/// What a shard's lock guards. Both maps hold exactly what the machine knows of.
pub(super) struct Shard {
    pub(super) switchboard: Switchboard<Option<rmpv::Value>>,
    pub(super) sockets: HashMap<SocketId, SocketLocation>,
    pub(super) held: HashMap<CallId, OpenCall>,
}

/// The driver of a shard.
pub(super) fn new(limits: Settings, clock: Clock) -> Driver<Shard> {
    let switchboard = Switchboard::new(limits);
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
fn deed(state: &mut Shard, command: Command<Option<rmpv::Value>>) -> Option<CallAction> {
    Some(match command {
        Command::AskTarget { call, ask, input, candidates, .. } => {
            CallAction::AskTarget { call, ask, key: state.held.get(&call)?.key(), input, candidates }
        }
        Command::AskGrace { call, ask, user, input, absence } => {
            let room = RpcRoom { user, method: input.method.clone() };
            let key = state.held.get(&call)?.key();
            CallAction::AskGrace { room, question: GraceQuestion { call, ask, key, input, absence } }
        }
        Command::AskPresence { call, ask, input, doubt, .. } => {
            CallAction::AskPresence { call, ask, key: state.held.get(&call)?.key(), input, doubt }
        }
        Command::Emit { call, target, left, resumable } => {
            let seat = state.sockets.get(&target).cloned();
            let held = state.held.get_mut(&call)?;
            let (method, params) = held.request(seat.as_ref());
            CallAction::Emit { call, target, seat, method, params, left, is_named: resumable, trace: held.trace() }
        }
        Command::Held { call, since, left } => {
            CallAction::Notify { notice: state.held.get(&call)?.notice(since, left)? }
        }
        Command::Answer { call, answer } => CallAction::Answer { held: state.held.remove(&call)?, answer },
        Command::Forget { call } => CallAction::Forget { held: state.held.remove(&call)? },
        Command::WarnSeveral { user, method, count } => CallAction::WarnSeveral { user, method, count },
    })
}
