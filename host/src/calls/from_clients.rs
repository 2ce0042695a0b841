//! What clients do: connect, register methods, call, disconnect.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use pointwork_core::{
    CallRefused,
    calls::message,
    decisions::{Departure, Traits},
    room,
};

use super::{
    call::{
        location::SocketLocation,
        open_call::{CallerRequest, OpenCall},
        request::{CallRefusal, CallRequest},
    },
    daemons::resume::ResumeKey,
    state::{Calls, Participant},
};
use crate::{
    edge::{
        payload::{IncomingEvent, RpcAnswer, memory_bytes},
        send::{acknowledge, emit},
        socketio::{AckSender, SocketRef, socket_id},
    },
    telemetry::{CallOutcome, MethodLabel, Tracer},
};

impl Calls {
    /// A socket of the client is connected.
    pub fn connect(self: &Arc<Self>, socket: &SocketRef, participant: &Participant) {
        let traits = Traits { local: true, resumable: participant.capabilities.resume, ..Traits::default() };
        if participant.capabilities.resume {
            socket.extensions.insert(ResumeKey(participant.client));
        }
        self.drive_shard(participant.shard, |shard, now| {
            shard.sockets.insert(socket_id(socket.id), SocketLocation::Here(socket.clone()));
            shard.machine.handle_connect(socket_id(socket.id), participant.user.clone(), 0, traits, now);
        });
    }

    /// A packet of the socket arrived that is no RPC event.
    pub fn touch(self: &Arc<Self>, socket: &SocketRef, participant: &Participant) {
        self.drive_shard(participant.shard, |shard, now| shard.machine.handle_packet(socket_id(socket.id), now));
    }

    /// `rpc-register`; `method` is `None` when the payload names none.
    pub fn register(self: &Arc<Self>, socket: &SocketRef, participant: &Participant, method: Option<String>) {
        let registered = method.map(|method| {
            let method: Arc<str> = method.into();
            let outcome = self.drive_shard(participant.shard, |shard, now| {
                shard.machine.handle_register(socket_id(socket.id), method.clone(), now)
            });
            (method, outcome)
        });
        match registered {
            Some((method, Ok(()))) => {
                self.methods.registered(&method, || participant.key);
                self.replicas.joined(socket_id(socket.id), &participant.user, participant.capabilities.resume, &method);
                socket.join(room::rpc(&participant.user, &method));
                emit(socket, "rpc-registered", &serde_json::json!({ "method": &*method }));
            }
            Some((_, Err(error))) => refuse(socket, "register", error.message()),
            None => refuse(socket, "register", message::INVALID_METHOD),
        }
    }

    /// `rpc-unregister`; `method` is `None` when the payload names none.
    pub fn unregister(self: &Arc<Self>, socket: &SocketRef, participant: &Participant, method: Option<String>) {
        let unregistered = method.map(|method| {
            let method: Arc<str> = method.into();
            let outcome = self.drive_shard(participant.shard, |shard, now| {
                shard.machine.handle_unregister(socket_id(socket.id), &method, now)
            });
            (method, outcome)
        });
        match unregistered {
            Some((method, Ok(()))) => {
                self.replicas.left(socket_id(socket.id), &method);
                socket.leave(room::rpc(&participant.user, &method));
                emit(socket, "rpc-unregistered", &serde_json::json!({ "method": &*method }));
            }
            Some((_, Err(error))) => refuse(socket, "unregister", error.message()),
            None => refuse(socket, "unregister", message::INVALID_METHOD),
        }
    }

    /// `rpc-call {method, params}`, answered through `ack`.
    pub fn call(
        self: &Arc<Self>,
        socket: &SocketRef,
        participant: &Participant,
        incoming: IncomingEvent,
        ack: AckSender,
    ) {
        let bytes = incoming.bytes;
        let CallRequest { method, params, timeout } = match CallRequest::of(incoming, self.params_bytes_max) {
            Ok(asked) => asked,
            Err(refusal) => return self.refuse(self.methods.other(), socket, ack, &refusal),
        };
        let label = self.methods.label(&method);
        let timeout = self.deadlines.of(&method, timeout);
        let memory_bytes = params.as_ref().map_or(0, memory_bytes);
        let method: Arc<str> = method.into();
        let wants_waiting = participant.capabilities.waiting;
        let request =
            CallerRequest { caller: socket.clone(), ack, method: method.clone(), label, params, wants_waiting };
        let Some(place) = self.places.take(memory_bytes) else {
            return self.refuse(label, socket, request.ack, &CallRefused::TooManyCalls.into());
        };
        let span = self.tracer.as_ref().and_then(Tracer::call);
        let mut held = Some(OpenCall::new(request, participant.key, place, span));
        let refused = self.drive_shard(participant.shard, |shard, now| {
            let call = shard.machine.handle_call(socket_id(socket.id), method, bytes, timeout, now)?;
            if let Some(held) = held.take() {
                shard.open_calls.insert(call, held);
                self.taken.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, CallRefused>(())
        });
        if let (Err(refused), Some(held)) = (refused, held) {
            self.refuse(label, socket, held.into_ack(), &refused.into());
        }
    }

    /// Acknowledges a refused call with the reason.
    fn refuse(&self, label: MethodLabel, caller: &SocketRef, ack: AckSender, refusal: &CallRefusal) {
        self.methods.ended(label, CallOutcome::Refused);
        metrics::counter!("rpc_refused_total", "reason" => refusal.label()).increment(1);
        acknowledge(caller, ack, &RpcAnswer::error(refusal.to_string()));
    }

    /// The socket is gone. Returns how long it had been silent.
    pub fn disconnect(
        self: &Arc<Self>,
        socket: &SocketRef,
        participant: &Participant,
        departure: Departure,
    ) -> Duration {
        let idle = self.drive_shard(participant.shard, |shard, now| {
            let idle = shard.machine.directory().idle(socket_id(socket.id), now);
            shard.sockets.remove(&socket_id(socket.id));
            shard.machine.handle_disconnect(socket_id(socket.id), departure, now);
            idle.unwrap_or_default()
        });
        self.replicas.gone(socket_id(socket.id), departure);
        idle
    }
}

/// `rpc-error {type, error}`.
fn refuse(socket: &SocketRef, what: &'static str, error: &str) {
    metrics::counter!("rpc_errors_total", "type" => what).increment(1);
    emit(socket, "rpc-error", &serde_json::json!({ "type": what, "error": error }));
}
