//! What the host holds for a call while the machine decides.

use std::{sync::Arc, time::Duration};

use pointwork_core::{Answer as Outcome, CallRefused, call::message};
use tokio::{task::AbortHandle, time::Instant};

use super::{asked::Refusal, places::Place};
use crate::{
    deliver::{acknowledge, tell},
    experiments::Answered,
    io::{AckSender, SocketRef},
    wire::{Answer, RpcWaiting},
};

/// What a caller asked for.
pub(super) struct Request {
    pub(super) caller: SocketRef,
    pub(super) ack: AckSender,
    pub(super) method: Arc<str>,
    pub(super) params: Option<rmpv::Value>,
    /// It wants to know when its call is held.
    pub(super) wants_waiting: bool,
}

impl Request {
    /// Tells the caller why its call was not taken.
    pub(super) fn refuse(self, refused: CallRefused) {
        refuse(&self.caller, self.ack, &refused.into());
    }
}

/// A call that was taken on.
pub(super) struct Held {
    request: Request,
    key: u64,
    arrived: Instant,
    /// When it was sent to a daemon.
    sent: Option<Instant>,
    /// Awaits the daemon's answer; ends with the call.
    waiting: Option<AbortHandle>,
    _place: Place,
}

impl Held {
    /// `key` stands for the user in a policy's input; `place` is one of the calls that may be open.
    pub(super) fn new(request: Request, key: u64, place: Place) -> Self {
        Self { request, key, arrived: Instant::now(), sent: None, waiting: None, _place: place }
    }

    pub(super) fn key(&self) -> u64 {
        self.key
    }

    /// The method and, once, the parameters: a request is sent once at most.
    pub(super) fn request(&mut self) -> (Arc<str>, Option<rmpv::Value>) {
        self.sent = Some(Instant::now());
        (self.request.method.clone(), self.request.params.take())
    }

    /// Whom to tell that the call is held, if its caller wants to know.
    pub(super) fn notice(&self, since: Duration, left: Duration) -> Option<Notice> {
        let Request { caller, method, wants_waiting, .. } = &self.request;
        wants_waiting.then(|| Notice { caller: caller.clone(), method: method.clone(), since, left })
    }

    pub(super) fn answered_by(&mut self, waiting: AbortHandle) {
        self.waiting = Some(waiting);
    }

    /// What experiments are told of a call that ends so.
    pub(super) fn answered(&self, outcome: &Outcome<Option<rmpv::Value>>) -> Answered {
        let took = self.arrived.elapsed();
        let waited = self.sent.map_or(took, |sent| sent.saturating_duration_since(self.arrived));
        Answered { result: label(outcome), waited, took }
    }

    /// Tells the caller how its call ended.
    pub(super) fn answer(self, outcome: Outcome<Option<rmpv::Value>>) {
        let label = label(&outcome);
        metrics::counter!("rpc_calls_total", "result" => label).increment(1);
        metrics::histogram!("rpc_call_duration_seconds", "result" => label)
            .record(self.arrived.elapsed().as_secs_f64());
        self.stop_waiting();
        let answer = match (outcome.error(), outcome) {
            (Some(error), _) => Answer::error(error),
            (None, Outcome::Result(result)) => Answer::result(result),
            (None, _) => Answer::error(message::INTERNAL),
        };
        acknowledge(&self.request.caller, self.request.ack, &answer);
    }

    /// The caller is gone: nobody is told.
    pub(super) fn forget(self) {
        metrics::counter!("rpc_calls_total", "result" => "forgotten").increment(1);
        self.stop_waiting();
    }

    fn stop_waiting(&self) {
        if let Some(waiting) = &self.waiting {
            waiting.abort();
        }
    }

    /// Gives the request back: the machine did not take the call on.
    pub(super) fn into_request(self) -> Request {
        self.request
    }
}

/// What a caller is told of its call being held.
pub(super) struct Notice {
    caller: SocketRef,
    method: Arc<str>,
    since: Duration,
    left: Duration,
}

impl Notice {
    /// `rpc-waiting {method, sinceMs, deadlineMs}`.
    pub(super) fn give(self) {
        let waiting =
            RpcWaiting { method: &self.method, since_ms: millis_up(self.since), deadline_ms: millis_up(self.left) };
        tell(&self.caller, "rpc-waiting", &waiting);
    }
}

/// Whole milliseconds, rounded up: 0 is nothing at all.
fn millis_up(span: Duration) -> u64 {
    u64::try_from(span.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// Tells a caller why its call was not taken.
pub(super) fn refuse(caller: &SocketRef, ack: AckSender, refusal: &Refusal) {
    metrics::counter!("rpc_calls_total", "result" => "refused").increment(1);
    metrics::counter!("rpc_refused_total", "reason" => refusal.label()).increment(1);
    acknowledge(caller, ack, &Answer::error(refusal.to_string()));
}

/// How the call ended, as a metric's label.
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
