//! What the host holds for a call while the machine decides.

use std::{sync::Arc, time::Duration};

use pointwork_core::{Answer as Outcome, calls::message};
use tokio::{task::AbortHandle, time::Instant};

use super::{budget::Reservation, location::SocketLocation};
use crate::{
    edge::{
        payload::{RpcAnswer, RpcWaiting},
        send::{acknowledge, emit},
        socketio::{AckSender, SocketRef},
    },
    policies::assignments::EndedCall,
    telemetry::{CallOutcome, CallSpan, MethodLabel, MethodMetrics, TraceContext},
};

/// What a caller asked for.
pub(in crate::calls) struct CallerRequest {
    pub(in crate::calls) caller: SocketRef,
    pub(in crate::calls) ack: AckSender,
    pub(in crate::calls) method: Arc<str>,
    /// What the call is counted under.
    pub(in crate::calls) label: MethodLabel,
    pub(in crate::calls) params: Option<rmpv::Value>,
    /// It wants to know when its call is held.
    pub(in crate::calls) wants_waiting: bool,
}

/// A call that was taken on.
pub(in crate::calls) struct OpenCall {
    request: CallerRequest,
    key: u64,
    arrived: Instant,
    /// When it was sent to a daemon.
    sent: Option<Instant>,
    /// Awaits the daemon's answer; ends with the call.
    waiting: Option<AbortHandle>,
    /// Of a call that is traced.
    span: Option<Box<CallSpan>>,
    _place: Reservation,
}

impl OpenCall {
    /// `key` stands for the user in a policy's input; `place` is one of the calls that may be open.
    pub(in crate::calls) fn new(request: CallerRequest, key: u64, place: Reservation, span: Option<CallSpan>) -> Self {
        let span = span.map(Box::new);
        Self { request, key, arrived: Instant::now(), sent: None, waiting: None, span, _place: place }
    }

    pub(in crate::calls) fn key(&self) -> u64 {
        self.key
    }

    /// The method and, once, the parameters: a request is sent once at most. `seat` is where it goes.
    pub(in crate::calls) fn request(&mut self, seat: Option<&SocketLocation>) -> (Arc<str>, Option<rmpv::Value>) {
        let now = Instant::now();
        self.sent = Some(now);
        if let Some(span) = &mut self.span {
            let replica = match seat {
                Some(SocketLocation::There(there)) => Some(&there.owner),
                Some(SocketLocation::Here(_)) | None => None,
            };
            span.sent(replica, now.saturating_duration_since(self.arrived));
        }
        (self.request.method.clone(), self.request.params.take())
    }

    /// What the replica that the request goes to is told of its trace.
    pub(in crate::calls) fn trace(&self) -> Option<TraceContext> {
        self.span.as_ref().map(|span| span.context())
    }

    /// Whom to tell that the call is held, if its caller wants to know.
    pub(in crate::calls) fn notice(&self, since: Duration, left: Duration) -> Option<WaitingNotice> {
        let CallerRequest { caller, method, wants_waiting, .. } = &self.request;
        wants_waiting.then(|| WaitingNotice { caller: caller.clone(), method: method.clone(), since, left })
    }

    pub(in crate::calls) fn answered_by(&mut self, waiting: AbortHandle) {
        self.waiting = Some(waiting);
    }

    /// What experiments are told of a call that ends so.
    pub(in crate::calls) fn answered(&self, outcome: &Outcome<Option<rmpv::Value>>) -> EndedCall {
        let took = self.arrived.elapsed();
        let waited = self.sent.map_or(took, |sent| sent.saturating_duration_since(self.arrived));
        EndedCall { result: label(outcome), waited, took }
    }

    /// Tells the caller how its call ended.
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

    /// The caller is gone: nobody is told.
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

    /// Gives back what the caller is answered by: the machine did not take the call on.
    pub(in crate::calls) fn into_ack(mut self) -> AckSender {
        self.end_span(CallOutcome::Refused);
        self.request.ack
    }
}

/// What a caller is told of its call being held.
pub(in crate::calls) struct WaitingNotice {
    caller: SocketRef,
    method: Arc<str>,
    since: Duration,
    left: Duration,
}

impl WaitingNotice {
    /// `rpc-waiting {method, sinceMs, deadlineMs}`.
    pub(in crate::calls) fn give(self) {
        let waiting =
            RpcWaiting { method: &self.method, since_ms: millis_up(self.since), deadline_ms: millis_up(self.left) };
        emit(&self.caller, "rpc-waiting", &waiting);
    }
}

/// Whole milliseconds, rounded up: 0 is nothing at all.
fn millis_up(span: Duration) -> u64 {
    u64::try_from(span.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
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
