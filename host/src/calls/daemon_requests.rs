//! Sends a request to a daemon, here or at another replica, and brings its answer back.

use std::{sync::Arc, time::Duration};

use pointwork_core::{CallId, SocketId, decisions::Departure};
use socketioxide::AckError;
use socketioxide_redis_streams::RequestFailed;

use super::{
    call::location::{RemoteSocket, SocketLocation},
    state::Calls,
};
use crate::{
    edge::{
        payload::{Args, RPC_REQUEST, RpcRequest, check_args},
        send::handle_send_error,
        socketio::SocketRef,
    },
    telemetry::TraceContext,
};

/// A request on its way.
pub(super) struct OutgoingRequest<'a> {
    pub(super) index: usize,
    pub(super) call: CallId,
    pub(super) target: SocketId,
    pub(super) request: RpcRequest<'a>,
    /// How long the daemon may take.
    pub(super) left: Duration,
    /// Of a call that is traced: the other replica is told.
    pub(super) trace: Option<TraceContext>,
}

/// Has other replicas' requests followed that are part of a trace.
pub(super) fn trace(calls: &Calls) {
    if let Some(tracer) = calls.tracer.clone() {
        calls.namespace.trace_requests(move |traceparent| {
            let ended = tracer.request(traceparent)?;
            Some(Box::new(ended))
        });
    }
}

/// Why a request was not sent.
pub(super) enum NotSent {
    /// The daemon is leaving, or takes nothing more.
    Untaken,
    /// Its replica cannot be reached.
    Unreachable,
}

impl Calls {
    /// Hands the request over before it returns, so that requests to one daemon keep their order, and has the answer awaited.
    pub(super) fn send(
        self: &Arc<Self>,
        sending: OutgoingRequest<'_>,
        location: Option<SocketLocation>,
    ) -> Result<(), NotSent> {
        let (index, call) = (sending.index, sending.call);
        let waiting = match location {
            None => return Err(NotSent::Untaken),
            Some(SocketLocation::Here(socket)) => self.send_here(&sending, &socket)?,
            Some(SocketLocation::There(location)) => self.send_there(sending, &location)?,
        };
        self.shards[index].step(|state, _| match state.open_calls.get_mut(&call) {
            Some(held) => held.answered_by(waiting),
            // Settled meanwhile: by its answer, and the task has ended, or by a disconnect, and nobody needs it.
            None => waiting.abort(),
        });
        Ok(())
    }

    fn send_here(
        self: &Arc<Self>,
        sending: &OutgoingRequest<'_>,
        socket: &SocketRef,
    ) -> Result<tokio::task::AbortHandle, NotSent> {
        let (index, call) = (sending.index, sending.call);
        let answer = socket.timeout(sending.left).emit_with_ack::<_, Args>(RPC_REQUEST, &sending.request);
        let answer = answer.map_err(|error| {
            tracing::debug!(socket = %socket.id, %error, "an rpc-request could not be sent");
            handle_send_error(socket, &error);
            NotSent::Untaken
        })?;
        let calls = self.clone();
        let waiting = tokio::spawn(async move {
            let answer = answer.await;
            calls.drive_shard(index, |state, now| match answer.map(check_args) {
                Ok(Ok(args)) => state.machine.handle_result(call, args.into_first(), now),
                Ok(Err(_)) | Err(AckError::Decode(_)) => state.machine.handle_unusable(call, now),
                Err(AckError::Timeout | AckError::Socket(_)) => state.machine.handle_unanswerable(call, now),
            });
        });
        Ok(waiting.abort_handle())
    }

    fn send_there(
        self: &Arc<Self>,
        sending: OutgoingRequest<'_>,
        location: &RemoteSocket,
    ) -> Result<tokio::task::AbortHandle, NotSent> {
        let OutgoingRequest { index, call, target, request, left, trace } = sending;
        let traceparent = trace.map(TraceContext::traceparent);
        let packet = request.into_packet();
        let request = self.namespace.request_within(&location.owner, &location.id, packet, left, traceparent);
        let request = request.map_err(|error| {
            tracing::debug!(owner = %location.owner, %error, "an rpc-request could not be sent to another replica");
            NotSent::Unreachable
        })?;
        let calls = self.clone();
        let waiting = tokio::spawn(async move {
            let answer = request.answer().await;
            calls.drive_shard(index, |state, now| match answer.map(|first| check_args(Args(vec![first]))) {
                Ok(Ok(args)) => state.machine.handle_result(call, args.into_first(), now),
                Ok(Err(_)) => state.machine.handle_unusable(call, now),
                // Its own replica says so.
                Err(RequestFailed::Absent) => {
                    state.sockets.remove(&target);
                    state.machine.handle_undelivered(call, now);
                    state.machine.handle_disconnect(target, Departure::TransportLost, now);
                }
                Err(RequestFailed::Lost) => state.machine.handle_unreachable(call, now),
                Err(RequestFailed::TimedOut) => state.machine.handle_unanswerable(call, now),
            });
        });
        Ok(waiting.abort_handle())
    }
}
