//! What the host keeps for a call until it ends: the caller, its parameters, its budget and its trace.

use std::{sync::Arc, time::Duration};

use pointwork_core::{Answer as Outcome, calls::message};
use tokio::{task::AbortHandle, time::Instant};

use super::{budget::Reservation, location::SocketLocation, waiting_event::WaitingEvent};
use crate::{
    edge::{
        payload::RpcAnswer,
        send::acknowledge,
        socketio::{AckSender, SocketRef},
    },
    policies::assignments::EndedCall,
    telemetry::{CallOutcome, CallSpan, MethodLabel, MethodMetrics, TraceContext},
};

/// The request of a caller.
pub(in crate::calls) struct CallerRequest {
    pub(in crate::calls) caller: SocketRef,
    pub(in crate::calls) ack: AckSender,
    pub(in crate::calls) method: Arc<str>,
    /// The label of the method's metrics.
    pub(in crate::calls) label: MethodLabel,
    pub(in crate::calls) params: Option<rmpv::Value>,
    /// The caller wants `rpc-waiting` events.
    pub(in crate::calls) wants_waiting: bool,
}

/// A call that the machine accepted.
pub(in crate::calls) struct OpenCall {
    request: CallerRequest,
    key: u64,
    arrived: Instant,
    /// When it was sent to a daemon.
    sent: Option<Instant>,
    /// The task that awaits the daemon's answer. It ends with the call.
    waiting: Option<AbortHandle>,
    /// The span, if the call is traced.
    span: Option<Box<CallSpan>>,
    _place: Reservation,
}

impl OpenCall {
    /// `key` stands for the user in a policy's input. `place` is the call's share of the budget.
    pub(in crate::calls) fn new(request: CallerRequest, key: u64, place: Reservation, span: Option<CallSpan>) -> Self {
        let span = span.map(Box::new);
        Self { request, key, arrived: Instant::now(), sent: None, waiting: None, span, _place: place }
    }

    pub(in crate::calls) fn key(&self) -> u64 {
        self.key
    }

    /// The method, and the parameters the first time: a request is sent at most once. `location` is where it goes.
    pub(in crate::calls) fn request(&mut self, location: Option<&SocketLocation>) -> (Arc<str>, Option<rmpv::Value>) {
        let now = Instant::now();
        self.sent = Some(now);
        if let Some(span) = &mut self.span {
            let replica = match location {
                Some(SocketLocation::There(there)) => Some(&there.owner),
                Some(SocketLocation::Here(_)) | None => None,
            };
            span.sent(replica, now.saturating_duration_since(self.arrived));
        }
        (self.request.method.clone(), self.request.params.take())
    }

    /// The trace context for the replica that the request goes to.
    pub(in crate::calls) fn trace(&self) -> Option<TraceContext> {
        self.span.as_ref().map(|span| span.context())
    }

    /// The `rpc-waiting` event, if the caller wants it.
    pub(in crate::calls) fn waiting_event(&self, since: Duration, left: Duration) -> Option<WaitingEvent> {
        let CallerRequest { caller, method, wants_waiting, .. } = &self.request;
        wants_waiting.then(|| WaitingEvent { caller: caller.clone(), method: method.clone(), since, left })
    }

    pub(in crate::calls) fn answered_by(&mut self, waiting: AbortHandle) {
        self.waiting = Some(waiting);
    }

    /// What experiments count of a call with this outcome.
    pub(in crate::calls) fn answered(&self, outcome: &Outcome<Option<rmpv::Value>>) -> EndedCall {
        let took = self.arrived.elapsed();
        let waited = self.sent.map_or(took, |sent| sent.saturating_duration_since(self.arrived));
        EndedCall { result: label(outcome), waited, took }
    }

    /// Acknowledges the call to its caller.
    pub(in crate::calls) fn answer(mut self, outcome: Outcome<Option<rmpv::Value>>, methods: &MethodMetrics) {
        let ended = ended(&outcome);
        methods.answered(self.request.label, ended, self.arrived.elapsed());
        self.end_span(ended);
        self.stop_waiting();
        let answer = match (outcome.error(), outcome) {
            (Some(error), _) => RpcAnswer::error(error),
            (None, Outcome::Result(result)) => RpcAnswer::result(result),
            (None, _) => RpcAnswer::error(message::INTERNAL),
        };
        acknowledge(&self.request.caller, self.request.ack, &answer);
    }

    /// Ends a call whose caller has gone: there is nobody to acknowledge it to.
    pub(in crate::calls) fn forget(mut self, methods: &MethodMetrics) {
        methods.ended(self.request.label, CallOutcome::Forgotten);
        self.end_span(CallOutcome::Forgotten);
        self.stop_waiting();
    }

    fn end_span(&mut self, ended: CallOutcome) {
        if let Some(span) = self.span.take() {
            span.end(&self.request.method, ended.as_str(), ended != CallOutcome::Success);
        }
    }

    fn stop_waiting(&self) {
        if let Some(waiting) = &self.waiting {
            waiting.abort();
        }
    }

    /// Returns the acknowledgement of a call that the machine refused.
    pub(in crate::calls) fn into_ack(mut self) -> AckSender {
        self.end_span(CallOutcome::Refused);
        self.request.ack
    }
}

/// How the call ended, as it is counted.
const fn ended<R>(outcome: &Outcome<R>) -> CallOutcome {
    match outcome {
        Outcome::Result(_) => CallOutcome::Success,
        Outcome::Unavailable => CallOutcome::NotAvailable,
        Outcome::SameSocket => CallOutcome::SameSocket,
        Outcome::TargetDisconnected => CallOutcome::TargetDisconnected,
        Outcome::TimedOut => CallOutcome::Timeout,
        Outcome::Unusable => CallOutcome::Unusable,
        Outcome::Unreachable => CallOutcome::Unreachable,
    }
}

/// How the call ended, as experiments count it.
const fn label<R>(outcome: &Outcome<R>) -> &'static str {
    match outcome {
        Outcome::Result(_) => "success",
        Outcome::Unavailable => "not_available",
        Outcome::SameSocket => "same_socket",
        Outcome::TargetDisconnected => "disconnected",
        Outcome::TimedOut => "timeout",
        Outcome::Unusable => "unusable",
        Outcome::Unreachable => "unreachable",
    }
}
