//! Daemons that come back on another socket and go on with their calls.
//!
//! By `rpc-resumed` a daemon says which requests of its former socket it still has. All replicas hear of it, because each may have
//! calls in flight to that socket. The replica of the former socket ends it: it may not know yet that its connection is dead.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
    sync::Arc,
};

use pointwork_core::{CallId, SocketId, calls::message};
use socketioxide::socket::Sid;

use super::call_name::named;
use crate::{
    calls::{
        call::location::SocketLocation,
        state::{Calls, Participant},
    },
    cluster::Resumed,
    edge::{
        disconnect::disconnect_slow_client,
        payload::{IncomingEvent, RpcAnswer, take_field},
        send::acknowledge,
        socketio::{AckSender, SocketRef, socket_id},
    },
};

/// Says of a socket that its client has another one: its end is no news of the client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Superseded;

/// What the client of a socket is that may resume on another one: no other client of the user ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::calls) struct ResumeKey(pub(in crate::calls) u64);

/// How many requests a daemon can have at once from all replicas, for all that is believed.
const RESUMED_MAX: usize = 10_000;

impl Calls {
    /// `rpc-resumed {socket, callIds}`, answered through `ack`.
    pub fn resumed(
        self: &Arc<Self>,
        socket: &SocketRef,
        participant: &Participant,
        incoming: IncomingEvent,
        ack: AckSender,
    ) {
        self.touch(socket, participant);
        if !participant.capabilities.resume {
            let error = "Invalid parameters: the capability rpc-resume is required";
            return acknowledge(socket, ack, &RpcAnswer::error(error));
        }
        let resumed = match resumed_of(incoming, participant, socket_id(socket.id)) {
            Ok(resumed) => resumed,
            Err(error) => return acknowledge(socket, ack, &RpcAnswer::error(error)),
        };
        // Before whatever the daemon registers next.
        self.replicas.resumed(&resumed);
        self.resume(&resumed);
        acknowledge(socket, ack, &RpcAnswer::done());
    }

    /// A daemon is back, here or elsewhere.
    pub(crate) fn resume(self: &Arc<Self>, resumed: &Resumed) {
        let Resumed { user, old, new, client, has } = resumed;
        if old == new {
            return;
        }
        let none = BTreeSet::new();
        let has = has.get(self.replicas.cluster().uid()).unwrap_or(&none);
        let location = self.drive_shard_aside(self.shard_of(user), |state, now| {
            let location = state.sockets.get(old).cloned();
            if let Some(SocketLocation::Here(socket)) = &location
                && socket.extensions.get::<ResumeKey>() != Some(ResumeKey(*client))
            {
                return None;
            }
            let is_theirs = state.machine.directory().user(*old) == Some(user);
            state.machine.handle_resumed(user, *old, *new, has, now);
            location.filter(|_| is_theirs)
        });
        if let Some(SocketLocation::Here(socket)) = location {
            socket.extensions.insert(Superseded);
            disconnect_slow_client(&socket);
        }
    }
}

/// Reads `rpc-resumed`. The error is what the daemon is told.
fn resumed_of(incoming: IncomingEvent, participant: &Participant, new: SocketId) -> Result<Resumed, String> {
    let (user, client) = (participant.user.clone(), participant.client);
    let mut body = incoming.args.map_err(|unfit| unfit.to_string())?.into_first().unwrap_or(rmpv::Value::Nil);
    let old = take_field(&mut body, "socket").and_then(|old| Some(socket_id(Sid::from_str(old.as_str()?).ok()?)));
    let old = old.ok_or("Invalid parameters: socket is required")?;
    let Some(rmpv::Value::Array(calls)) = take_field(&mut body, "callIds") else {
        return Err("Invalid parameters: callIds is required".to_owned());
    };
    if calls.len() > RESUMED_MAX {
        return Err(message::TOO_MANY_CALLS.to_owned());
    }
    let mut has: BTreeMap<String, BTreeSet<CallId>> = BTreeMap::new();
    for (owner, call) in calls.iter().filter_map(|call| named(call.as_str()?)) {
        has.entry(owner).or_default().insert(call);
    }
    Ok(Resumed { user, old, new, client, has })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::edge::{identity::Capabilities, payload::Args};

    #[test]
    fn a_daemon_that_is_back_names_its_former_socket_and_its_calls() {
        let resumed = |socket: &str, calls: &[&str]| {
            let calls = calls.iter().map(|call| (*call).into()).collect();
            let body = vec![("socket".into(), socket.into()), ("callIds".into(), rmpv::Value::Array(calls))];
            let incoming = IncomingEvent { args: Ok(Args(vec![rmpv::Value::Map(body)])), bytes: 0 };
            let participant =
                Participant { user: "u".into(), capabilities: Capabilities::default(), client: 5, key: 0, shard: 0 };
            resumed_of(incoming, &participant, SocketId(7))
        };
        let (one, other) = ("0123456789abcdef", "fedcba9876543210");
        let calls = [format!("{one}-1"), format!("{other}-a"), format!("{one}-2"), "nonsense".to_owned()];
        let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
        let Resumed { old, new, has, .. } = resumed("AAAAAAAAAAAAAAAB", &calls).unwrap();
        assert_eq!((old.0.to_be_bytes(), new), (*b"AAAAAAAAAAAAAAAB", SocketId(7)));
        let calls = |ids: &[u64]| ids.iter().map(|id| CallId(*id)).collect::<BTreeSet<_>>();
        assert_eq!(has, BTreeMap::from([(one.to_owned(), calls(&[1, 2])), (other.to_owned(), calls(&[10]))]));
        assert_eq!(resumed("of Node", &[]).unwrap_err(), "Invalid parameters: socket is required");
    }
}
