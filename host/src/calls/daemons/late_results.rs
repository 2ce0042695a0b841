//! Results that a daemon brings on another socket than the request came on.
//!
//! A call lives at its caller's replica, and the call's id names that replica. When a daemon sends `rpc-result`, its replica asks that
//! one to take the result. The daemon tries again until it hears that the result was taken, or that no call waits for it.

use std::sync::Arc;

use pointwork_core::{CallId, calls::message};

use super::call_name::named;
use crate::{
    calls::state::{Calls, Participant},
    edge::{
        payload::{IncomingEvent, RpcAnswer, take_field},
        send::acknowledge,
        socketio::{AckSender, SocketRef},
    },
};

/// The event by which a replica brings another one a result: `[user, call, result]`, acknowledged with whether it was taken.
const LATE_RESULT: &str = "pointwork:rpc-result";

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
            Self::Taken => RpcAnswer::done(),
            Self::Unknown => RpcAnswer::error("Unknown call"),
            Self::Unreachable => RpcAnswer::error(message::UNREACHABLE),
        };
        acknowledge(socket, ack, &answer);
    }
}

impl Calls {
    /// What a daemon is told to name a call by.
    pub(in crate::calls) fn name_call(&self, call: CallId) -> String {
        format!("{}-{:x}", self.replicas.cluster().uid(), call.0)
    }

    /// `rpc-result {callId, result}`, answered through `ack`.
    pub fn late_result(
        self: &Arc<Self>,
        socket: &SocketRef,
        participant: &Participant,
        incoming: IncomingEvent,
        ack: AckSender,
    ) {
        self.touch(socket, participant);
        let LateResult { owner, call, result } = match LateResult::of(incoming) {
            Ok(late_result) => late_result,
            Err(error) => return acknowledge(socket, ack, &RpcAnswer::error(error)),
        };
        let cluster = self.replicas.cluster();
        if owner == cluster.uid() {
            return Outcome::of(self.take_in(&participant.user, call, result)).tell(socket, ack);
        }
        let standing = cluster.standing();
        if standing.linked && standing.complete && !cluster.knows(&owner) {
            // It is gone, with its callers and their calls.
            return Outcome::Unknown.tell(socket, ack);
        }
        let (namespace, socket, user) = (self.namespace.clone(), socket.clone(), participant.user.clone());
        tokio::spawn(async move {
            let args = vec![(*user).into(), call.0.into(), result.unwrap_or(rmpv::Value::Nil)];
            let answer = namespace.ask_server(&owner, LATE_RESULT, args, None).await;
            let is_taken = answer.ok().flatten().and_then(|answer| answer.as_bool());
            is_taken.map_or(Outcome::Unreachable, Outcome::of).tell(&socket, ack);
        });
    }

    /// A result for a call of this replica.
    fn take_in(self: &Arc<Self>, user: &str, call: CallId, result: Option<rmpv::Value>) -> bool {
        self.drive_shard_aside(self.shard_of(user), |state, now| {
            state.machine.handle_handed_in(user, call, result, now)
        })
    }
}

/// Takes what other replicas bring.
pub(in crate::calls) fn serve(calls: &Arc<Calls>) {
    let weak = Arc::downgrade(calls);
    calls.namespace.answer_server_side(move |event, args| {
        let [user, call, result] = match <[rmpv::Value; 3]>::try_from(args) {
            Ok(args) if event == LATE_RESULT => args,
            _ => return rmpv::Value::Nil,
        };
        let (Some(calls), Some(user), Some(call)) = (weak.upgrade(), user.as_str(), call.as_u64()) else {
            return rmpv::Value::Nil;
        };
        calls.take_in(user, CallId(call), Some(result)).into()
    });
}

/// What a daemon hands in.
struct LateResult {
    /// The replica that the call is at.
    owner: String,
    call: CallId,
    result: Option<rmpv::Value>,
}

impl LateResult {
    /// The error is what the daemon is told.
    fn of(incoming: IncomingEvent) -> Result<Self, String> {
        let args = incoming.args.map_err(|unfit| unfit.to_string())?;
        let mut body = args.into_first().unwrap_or(rmpv::Value::Nil);
        let Some(rmpv::Value::String(id)) = take_field(&mut body, "callId") else {
            return Err("Invalid parameters: callId is required".to_owned());
        };
        let (owner, call) = id.as_str().and_then(named).ok_or("Unknown call")?;
        Ok(Self { owner, call, result: take_field(&mut body, "result") })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::edge::payload::Args;

    fn of(body: rmpv::Value) -> Result<(String, u64, Option<rmpv::Value>), String> {
        let late_result = LateResult::of(IncomingEvent { args: Ok(Args(vec![body])), bytes: 0 })?;
        Ok((late_result.owner, late_result.call.0, late_result.result))
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
}
