//! One shard: the call machine of its users, and the handles that the machine's ids stand for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use pointwork_core::{CallId, Command, RpcRoom, Settings, SocketId, Switchboard, Time};

use super::{Rpc, carry::Deed, held::Held, lookup::GraceQuestion};
use crate::{alarm::Alarm, io::SocketRef, lock::lock};

/// A shard, and the alarm of its timer.
pub(super) struct Shard {
    state: Mutex<State>,
    alarm: Alarm,
}

/// What a shard's lock guards. Both maps hold exactly what the machine knows of.
pub(super) struct State {
    pub(super) switchboard: Switchboard<Option<rmpv::Value>>,
    pub(super) sockets: HashMap<SocketId, Seat>,
    pub(super) held: HashMap<CallId, Held>,
}

/// Where a socket is.
#[derive(Clone)]
pub(super) enum Seat {
    /// Here.
    Here(SocketRef),
    /// At another replica.
    There(RemoteSeat),
}

/// A socket of another replica: whose it is, and its id there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemoteSeat {
    pub(super) owner: Arc<str>,
    pub(super) id: Arc<str>,
}

impl Shard {
    pub(super) fn new(limits: Settings) -> Self {
        let state = State { switchboard: Switchboard::new(limits), sockets: HashMap::new(), held: HashMap::new() };
        Self { state: Mutex::new(state), alarm: Alarm::new() }
    }

    /// Takes one step of the machine and gives its result with the deeds it asks for, in order.
    pub(super) fn step<T>(&self, now: Time, step: impl FnOnce(&mut State, Time) -> T) -> (T, Vec<Deed>) {
        let mut state = lock(&self.state);
        let result = step(&mut state, now);
        let mut deeds = Vec::new();
        while let Some(command) = state.switchboard.next_command() {
            deeds.extend(deed(&mut state, command));
        }
        let next = state.switchboard.poll_timeout();
        drop(state);
        self.alarm.set(next);
        (result, deeds)
    }

    /// Looks at the state, without a step of the machine.
    pub(super) fn peek<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&lock(&self.state))
    }

    /// Waits until the machine's next deadline has come.
    async fn due(&self, rpc: &Rpc) {
        self.alarm.due(|| lock(&self.state).switchboard.poll_timeout(), || rpc.now()).await;
    }
}

/// Runs the timer of the shard at `index` for as long as the layer lives.
pub(super) fn keep_time(rpc: &Arc<Rpc>, index: usize) {
    let rpc = rpc.clone();
    tokio::spawn(async move {
        loop {
            rpc.shards[index].due(&rpc).await;
            rpc.drive_shard(index, |state, now| state.switchboard.handle_timeout(now));
        }
    });
}

/// Puts the handles to a command's ids, while the lock is held.
fn deed(state: &mut State, command: Command<Option<rmpv::Value>>) -> Option<Deed> {
    Some(match command {
        Command::AskTarget { call, ask, input, candidates, .. } => {
            Deed::AskTarget { call, ask, key: state.held.get(&call)?.key(), input, candidates }
        }
        Command::AskGrace { call, ask, user, input, absence } => {
            let room = RpcRoom { user, method: input.method.clone() };
            let key = state.held.get(&call)?.key();
            Deed::AskGrace { room, question: GraceQuestion { call, ask, key, input, absence } }
        }
        Command::AskPresence { call, ask, input, doubt, .. } => {
            Deed::AskPresence { call, ask, key: state.held.get(&call)?.key(), input, doubt }
        }
        Command::Emit { call, target, left, resumable } => {
            let seat = state.sockets.get(&target).cloned();
            let held = state.held.get_mut(&call)?;
            let (method, params) = held.request(seat.as_ref());
            Deed::Emit { call, target, seat, method, params, left, is_named: resumable, trace: held.trace() }
        }
        Command::Held { call, since, left } => Deed::Notify { notice: state.held.get(&call)?.notice(since, left)? },
        Command::Answer { call, answer } => Deed::Answer { held: state.held.remove(&call)?, answer },
        Command::Forget { call } => Deed::Forget { held: state.held.remove(&call)? },
        Command::WarnSeveral { user, method, count } => Deed::WarnSeveral { user, method, count },
    })
}
