//! Daemons that go on with their calls after their connection was lost, on whatever replica they are then.
//!
//! A call lives at its caller's replica, which its id names. By `rpc-result` a daemon hands a result in, and that replica is asked to
//! take it; it is the daemon's to try again until it is told that the result was taken, or never will be. By `rpc-resumed` it says, when it is
//! back, which requests of its former socket it has: all replicas are told, for each may have calls in flight to that socket. One
//! has the socket itself, which may not know that nobody is there any more, and ends it.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
    sync::Arc,
};

use pointwork_core::{CallId, SocketId, call::message};
use socketioxide::socket::Sid;

use super::{Party, Rpc, shard::Seat, socket_id};
use crate::{
    deliver::acknowledge,
    io::{AckSender, SocketRef},
    shed::cut_off,
    wire::{Answer, Incoming, take},
};

/// The event by which a replica brings another one a result: `[user, call, result]`, acknowledged with whether it was taken.
const HANDED_IN: &str = "pointwork:rpc-result";

/// What became of a result, as the daemon is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The caller has it.
    Taken,
    /// No such call waits for one: final.
    Unknown,
    /// Its replica did not say: it may be tried again.
    Unreachable,
}

impl Outcome {
    fn of(is_taken: bool) -> Self {
        if is_taken { Self::Taken } else { Self::Unknown }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Unknown => "unknown",
            Self::Unreachable => "unreachable",
        }
    }

    fn tell(self, socket: &SocketRef, ack: AckSender) {
        metrics::counter!("rpc_handed_in_total", "result" => self.label()).increment(1);
        let answer = match self {
            Self::Taken => Answer::done(),
            Self::Unknown => Answer::error("Unknown call"),
            Self::Unreachable => Answer::error(message::UNREACHABLE),
        };
        acknowledge(socket, ack, &answer);
    }
}

impl Rpc {
    /// What a daemon is told to name a call by.
    pub(super) fn name_call(&self, call: CallId) -> String {
        format!("{}-{:x}", self.replicas.cluster().uid(), call.0)
    }

    /// `rpc-result {callId, result}`, answered through `ack`.
    pub fn hand_in(self: &Arc<Self>, socket: &SocketRef, party: &Party, incoming: Incoming, ack: AckSender) {
        self.touch(socket, party);
        let HandedIn { owner, call, result } = match HandedIn::of(incoming) {
            Ok(handed_in) => handed_in,
            Err(error) => return acknowledge(socket, ack, &Answer::error(error)),
        };
        let cluster = self.replicas.cluster();
        if owner == cluster.uid() {
            return Outcome::of(self.take_in(&party.user, call, result)).tell(socket, ack);
        }
        let standing = cluster.standing();
        if standing.linked && standing.complete && !cluster.knows(&owner) {
            // It is gone, with its callers and their calls.
            return Outcome::Unknown.tell(socket, ack);
        }
        let (namespace, socket, user) = (self.namespace.clone(), socket.clone(), party.user.clone());
        tokio::spawn(async move {
            let args = vec![(*user).into(), call.0.into(), result.unwrap_or(rmpv::Value::Nil)];
            let answer = namespace.ask_server(&owner, HANDED_IN, args, None).await;
            let is_taken = answer.ok().flatten().and_then(|answer| answer.as_bool());
            is_taken.map_or(Outcome::Unreachable, Outcome::of).tell(&socket, ack);
        });
    }

    /// A result for a call of this replica.
    fn take_in(self: &Arc<Self>, user: &str, call: CallId, result: Option<rmpv::Value>) -> bool {
        self.drive_shard_aside(self.shard_of(user), |state, now| {
            state.switchboard.handle_handed_in(user, call, result, now)
        })
    }
}

/// A daemon is back on another socket, and says which requests of its former one it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resumed {
    pub(crate) user: Arc<str>,
    pub(crate) old: SocketId,
    pub(crate) new: SocketId,
    /// What the client is, within its user.
    pub(crate) client: u64,
    /// By the replica of their callers.
    pub(crate) has: BTreeMap<String, BTreeSet<CallId>>,
}

/// Says of a socket that its client has another one: its end is no news of the client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Superseded;

/// What the client of a socket is that may resume on another one: no other client of the user ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Resumable(pub(super) u64);

/// How many requests a daemon can have at once from all replicas, for all that is believed.
const RESUMED_MAX: usize = 10_000;

impl Rpc {
    /// `rpc-resumed {socket, callIds}`, answered through `ack`.
    pub fn resumed(self: &Arc<Self>, socket: &SocketRef, party: &Party, incoming: Incoming, ack: AckSender) {
        self.touch(socket, party);
        if !party.capabilities.resume {
            let error = "Invalid parameters: the capability rpc-resume is required";
            return acknowledge(socket, ack, &Answer::error(error));
        }
        let resumed = match Resumed::of(incoming, party, socket_id(socket.id)) {
            Ok(resumed) => resumed,
            Err(error) => return acknowledge(socket, ack, &Answer::error(error)),
        };
        // Before whatever the daemon registers next.
        self.replicas.resumed(&resumed);
        self.resume(&resumed);
        acknowledge(socket, ack, &Answer::done());
    }

    /// A daemon is back, here or elsewhere.
    pub(crate) fn resume(self: &Arc<Self>, resumed: &Resumed) {
        let Resumed { user, old, new, client, has } = resumed;
        if old == new {
            return;
        }
        let none = BTreeSet::new();
        let has = has.get(self.replicas.cluster().uid()).unwrap_or(&none);
        let seat = self.drive_shard_aside(self.shard_of(user), |state, now| {
            let seat = state.sockets.get(old).cloned();
            if let Some(Seat::Here(socket)) = &seat
                && socket.extensions.get::<Resumable>() != Some(Resumable(*client))
            {
                return None;
            }
            let is_theirs = state.switchboard.directory().user(*old) == Some(user);
            state.switchboard.handle_resumed(user, *old, *new, has, now);
            seat.filter(|_| is_theirs)
        });
        if let Some(Seat::Here(socket)) = seat {
            socket.extensions.insert(Superseded);
            cut_off(&socket);
        }
    }
}

impl Resumed {
    /// The error is what the daemon is told.
    fn of(incoming: Incoming, party: &Party, new: SocketId) -> Result<Self, String> {
        let (user, client) = (party.user.clone(), party.client);
        let mut body = incoming.args.map_err(|unfit| unfit.to_string())?.into_first().unwrap_or(rmpv::Value::Nil);
        let old = take(&mut body, "socket").and_then(|old| Some(socket_id(Sid::from_str(old.as_str()?).ok()?)));
        let old = old.ok_or("Invalid parameters: socket is required")?;
        let Some(rmpv::Value::Array(calls)) = take(&mut body, "callIds") else {
            return Err("Invalid parameters: callIds is required".to_owned());
        };
        if calls.len() > RESUMED_MAX {
            return Err(message::TOO_MANY_CALLS.to_owned());
        }
        let mut has: BTreeMap<String, BTreeSet<CallId>> = BTreeMap::new();
        for (owner, call) in calls.iter().filter_map(|call| named(call.as_str()?)) {
            has.entry(owner).or_default().insert(call);
        }
        Ok(Self { user, old, new, client, has })
    }
}

/// Takes what other replicas bring.
pub(super) fn serve(rpc: &Arc<Rpc>) {
    let weak = Arc::downgrade(rpc);
    rpc.namespace.answer_server_side(move |event, args| {
        let [user, call, result] = match <[rmpv::Value; 3]>::try_from(args) {
            Ok(args) if event == HANDED_IN => args,
            _ => return rmpv::Value::Nil,
        };
        let (Some(rpc), Some(user), Some(call)) = (weak.upgrade(), user.as_str(), call.as_u64()) else {
            return rmpv::Value::Nil;
        };
        rpc.take_in(user, CallId(call), Some(result)).into()
    });
}

/// What a daemon hands in.
struct HandedIn {
    /// The replica that the call is at.
    owner: String,
    call: CallId,
    result: Option<rmpv::Value>,
}

impl HandedIn {
    /// The error is what the daemon is told.
    fn of(incoming: Incoming) -> Result<Self, String> {
        let args = incoming.args.map_err(|unfit| unfit.to_string())?;
        let mut body = args.into_first().unwrap_or(rmpv::Value::Nil);
        let Some(rmpv::Value::String(id)) = take(&mut body, "callId") else {
            return Err("Invalid parameters: callId is required".to_owned());
        };
        let (owner, call) = id.as_str().and_then(named).ok_or("Unknown call")?;
        Ok(Self { owner, call, result: take(&mut body, "result") })
    }
}

/// What an id names: the replica of a call, and the call.
fn named(id: &str) -> Option<(String, CallId)> {
    let (owner, call) = id.split_once('-')?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_owner = owner.len() == 16 && is_hex(owner) && is_hex(call);
    Some((is_owner.then(|| owner.to_owned())?, CallId(u64::from_str_radix(call, 16).ok()?)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{identity::Capabilities, wire::Args};

    fn of(body: rmpv::Value) -> Result<(String, u64, Option<rmpv::Value>), String> {
        let handed_in = HandedIn::of(Incoming { args: Ok(Args(vec![body])), bytes: 0 })?;
        Ok((handed_in.owner, handed_in.call.0, handed_in.result))
    }

    fn named(id: &str) -> rmpv::Value {
        rmpv::Value::Map(vec![("callId".into(), id.into()), ("result".into(), 7.into())])
    }

    #[test]
    fn an_id_names_a_replica_and_a_call() {
        assert_eq!(of(named("0123456789abcdef-1f")), Ok(("0123456789abcdef".to_owned(), 31, Some(7.into()))));
        for nonsense in [
            "",
            "-",
            "0123456789abcdef",
            "0123456789abcdef-",
            "0123456789abcdeX-1",
            "abc-1",
            "0123456789abcdef-1 ",
            "0123456789abcdef-+1",
        ] {
            assert_eq!(of(named(nonsense)), Err("Unknown call".to_owned()), "{nonsense:?}");
        }
        assert_eq!(of(rmpv::Value::Nil), Err("Invalid parameters: callId is required".to_owned()));
    }

    #[test]
    fn a_daemon_that_is_back_names_its_former_socket_and_its_calls() {
        let resumed = |socket: &str, calls: &[&str]| {
            let calls = calls.iter().map(|call| (*call).into()).collect();
            let body = vec![("socket".into(), socket.into()), ("callIds".into(), rmpv::Value::Array(calls))];
            let incoming = Incoming { args: Ok(Args(vec![rmpv::Value::Map(body)])), bytes: 0 };
            let party = Party { user: "u".into(), capabilities: Capabilities::default(), client: 5, key: 0, shard: 0 };
            Resumed::of(incoming, &party, SocketId(7))
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
